// What is said beside a text that is being written and holds characters which nobody sees: how many, which, and where.
// The pages show them as marks (review_ui.markup, whose list this is; held by tests/review_ui/test_autosave.py); a
// field has to show its text as it is. Nothing is taken out: that is for whoever writes.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\u{110bd}\u{110cd}\u{13430}-\u{1343f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}\u{f0000}-\u{fffff}\u{100000}-\u{10ffff}]/gu;
const PLACES = 5;  // told one by one; of the rest the number

const point = (one) => `U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

function kindOf(one) {
  const code = one.codePointAt(0);
  if (code === 0x202c || code === 0x2069) return "ends a change of the reading direction";
  if ((code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2068)) return "changes the reading direction";
  if (code === 0x200e || code === 0x200f || code === 0x061c) return "marks a reading direction";
  if ((code >= 0x200b && code <= 0x200d) || code === 0x2060 || code === 0xfeff) return "has no width";
  return "has no shape of its own";
}

// [what is said of all, what is said of each place]; [] where all can be seen.
function unseenWords(text) {
  const found = [...text.matchAll(UNSEEN)];
  if (!found.length) return [];
  const manyLines = text.includes("\n");
  const each = found.slice(0, PLACES).map((one) => {
    const before = text.slice(0, one.index);
    const start = before.lastIndexOf("\n") + 1;
    const line = before.split("\n").length;
    const seen = [...before.slice(start).replace(UNSEEN, "")];
    const tail = seen.slice(-16).join("").trim();
    const where = tail ? `after “${seen.length > 16 ? "…" : ""}${tail}”` : "at the beginning";
    return `${manyLines ? `line ${line}, ` : ""}${where}: ${kindOf(one[0])} (${point(one[0])})`;
  });
  const more = found.length - each.length;
  if (more) each.push(`and ${more.toLocaleString("en-US")} more`);
  const one = found.length === 1;
  const said = `${found.length.toLocaleString("en-US")} character${one ? "" : "s"} of this text cannot be seen here. `
    + `What a reader sees may differ from what is kept; nothing is taken out by itself.`;
  return [said, each];
}

// The box that says it, put below the control that holds the text; empty and out of the way as long as all is seen.
class Unseen {
  constructor(control, id) {
    this.control = control;
    this.box = document.createElement("div");
    this.box.className = "wb-unseen";
    this.box.id = `${id}-unseen`;
    this.words = document.createElement("p");
    this.words.setAttribute("role", "status");
    this.list = document.createElement("ul");
    this.box.append(this.words, this.list);
    this.look("");
  }

  look(text) {
    const [said = "", each = []] = unseenWords(text);
    const places = each.join("\n");
    // Said anew only where it changed: a screen reader reads it out.
    if (this.words.textContent !== said) this.words.textContent = said;
    if (this.places !== places) {
      this.places = places;
      this.list.replaceChildren(...each.map((one) => {
        const item = document.createElement("li");
        item.textContent = one;
        return item;
      }));
    }
    this.box.classList.toggle("wb-none", !said);
    if (said) this.control.setAttribute("aria-describedby", this.box.id);
    else this.control.removeAttribute("aria-describedby");
  }
}
