// A sheet of rows in which one chooses (field.js stands above it). A choice stands on the screen at once and is sent at
// once; until the server has confirmed it, each message carries it again. What the server sends never replaces a
// choice that it has not confirmed: a click is not lost however fast the next one follows.
const PACE = 300;      // ms between two messages while the first has not been answered
const REST = 400;      // ms of rest before a line that is typed is sent
const sheets = new WeakMap();
const waiting = new Map();     // identity -> choices of a sheet that was taken off the page before it was answered
let led = 0;                   // the newest place that the page has led to

const node = (name, cls, text) => {
  const made = document.createElement(name);
  if (cls) made.className = cls;
  if (text !== undefined) made.textContent = text;
  return made;
};
const icon = (name) => {
  const made = node("span", "ic", name);
  made.setAttribute("aria-hidden", "true");
  return made;
};
// The same element, with its text set only where it differs: nothing is drawn anew under the pointer.
const say = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

class Sheet {
  constructor(host, data) {
    this.host = host;
    this.identity = data.identity;
    this.entries = new Map();  // item -> {value, was, seq}: chosen, not confirmed
    this.server = new Map();   // item -> value as the server has it
    this.rows = new Map();     // item -> the row's elements
    this.cards = new Map();    // name -> a box round rows
    this.drafts = {};          // item -> the newest message of its text area
    this.seq = 0;
    this.sent = 0;
    this.acknowledged = 0;
    this.sentAt = 0;
    this.body = node("div", "wb-sheet");
    this.state = node("span", "wb-state");
    this.state.setAttribute("role", "status");
    host.replaceChildren(this.body);
    this.take(data);
    this.leaving = (event) => {
      this.push(true);
      if (event.type === "beforeunload" && this.ready().length && !this.keep) {
        event.preventDefault();
        event.returnValue = "";
      }
    };
    // What is done elsewhere on the page acts on all that was chosen here before.
    this.elsewhere = (event) => {
      if (event.target instanceof Node && !this.host.contains(event.target)) this.push(true);
    };
    document.addEventListener("pointerdown", this.elsewhere, true);
    document.addEventListener("keydown", this.elsewhere, true);
    this.hiding = () => document.visibilityState === "hidden" && this.push(true);
    window.addEventListener("pagehide", this.leaving);
    window.addEventListener("beforeunload", this.leaving);
    document.addEventListener("visibilitychange", this.hiding);
    this.restore(data);
  }

  // ---- what is chosen, and whether the server knows

  take(data) {
    for (const [item, value] of Object.entries(data.values)) this.server.set(item, value);
  }

  slot() {
    return `wb:${this.identity}`;
  }

  restore(data) {
    let held = waiting.get(this.identity);
    if (!held && data.keep) {
      try {
        held = Object.entries(JSON.parse(sessionStorage.getItem(this.slot()) || "{}"));
      } catch {
        held = undefined;
      }
    }
    for (const [item, entry] of held || []) {
      this.seq = Math.max(Date.now(), this.seq + 1);
      this.entries.set(item, { value: entry.value, was: entry.was, seq: this.seq, old: true });
    }
  }

  hold() {
    if (this.entries.size) waiting.set(this.identity, [...this.entries]);
    else waiting.delete(this.identity);
    if (!this.keep) return;
    try {
      if (this.entries.size) sessionStorage.setItem(this.slot(), JSON.stringify(Object.fromEntries(this.entries)));
      else sessionStorage.removeItem(this.slot());
    } catch {
      // A full or forbidden storage only takes the second net away.
    }
  }

  value(item) {
    const entry = this.entries.get(item);
    return entry ? entry.value : this.server.get(item) || "";
  }

  set(item, value, rest = 0) {
    const before = this.entries.get(item);
    const was = before ? before.was : this.server.get(item) || "";
    this.seq = Math.max(Date.now(), this.seq + 1);
    this.entries.set(item, { value, was, seq: this.seq });
    this.hold();
    this.paint();
    if (rest) {
      clearTimeout(this.pause);
      this.pause = setTimeout(() => this.push(), rest);
    } else {
      this.push();
    }
  }

  over(value) {
    return Math.max(0, value.length - (this.limit || Infinity));
  }

  // What is to be sent: all that is not confirmed, but for lines that cannot be kept as they are.
  ready() {
    return [...this.entries].filter(([, entry]) => !entry.conflict && !this.over(entry.value));
  }

  push(now = false) {
    clearTimeout(this.pause);
    clearTimeout(this.paced);
    const ready = this.ready();
    if (!ready.length || !this.send || this.sent >= this.seq) return;
    const left = this.sentAt + PACE - performance.now();
    if (!now && this.sent > this.acknowledged && left > 0) {
      this.paced = setTimeout(() => this.push(true), left);
      return;
    }
    this.sent = this.seq;
    this.sentAt = performance.now();
    const entries = {};
    for (const [item, entry] of ready) {
      entries[item] = { value: entry.value, was: entry.was, old: entry.old === true };
    }
    this.send({ session: this.session, seq: this.seq, entries });
    clearTimeout(this.late);
    this.late = setTimeout(() => {
      if (!this.ready().length) return;
      this.failed = true;
      this.paint();
      this.seq += 1;
      this.push(true);
    }, LATE);
  }

  receive(data) {
    this.keep = data.keep;
    this.data = data;
    const restarted = this.session !== undefined && this.session !== data.session;
    this.session = data.session;
    this.limit = data.limit;
    for (const [item, entry] of [...this.entries]) {
      if (entry.seq > data.seq || entry.conflict || this.over(entry.value)) continue;
      if (data.conflicts.includes(item)) entry.conflict = true;
      else this.entries.delete(item);
    }
    this.acknowledged = Math.max(restarted ? 0 : this.acknowledged, data.seq);
    this.take(data);
    if (!this.ready().length) {
      clearTimeout(this.late);
      this.failed = false;
    }
    if (!this.entries.size) {
      this.seq = Math.max(this.seq, data.seq);
      this.sent = this.seq;
    }
    this.hold();
    this.draw(data.rows);
    this.paint();
    this.lead(data.lead);
    if (this.entries.size && (restarted || this.sent < this.seq)) {
      // A server that has just started knows nothing of what was chosen while it was away.
      if (restarted) {
        for (const entry of this.entries.values()) entry.old = true;
        this.seq += 1;
      }
      this.push(restarted);
    }
  }

  // ---- drawing: a row is made once and then only changed, so that a click never meets an element that is being replaced

  draw(rows) {
    const wanted = new Set(rows.map((row) => row.item));
    for (const [item, made] of this.rows) {
      if (wanted.has(item)) continue;
      this.drop(made);
      this.rows.delete(item);
    }
    const cards = new Set(rows.map((row) => row.card).filter(Boolean));
    for (const [name, card] of this.cards) {
      if (cards.has(name)) continue;
      card.remove();
      this.cards.delete(name);
    }
    const last = new Map();  // box -> what was put into it last
    const put = (box, element) => {
      const before = last.get(box);
      const next = before ? before.nextSibling : box.firstChild;
      if (next !== element) box.insertBefore(element, next);
      last.set(box, element);
    };
    for (const row of rows) {
      let box = this.body;
      if (row.card) {
        if (!this.cards.has(row.card)) this.cards.set(row.card, node("div", `wb-card wb-${row.card.split(".")[0]}`));
        box = this.cards.get(row.card);
        if (!last.has(box)) put(this.body, box);
      }
      let made = this.rows.get(row.item);
      const shape = JSON.stringify([
        row.kind, row.options, row.half, Boolean(row.lead), row.stacked, row.placeholder, row.area && row.area.identity,
      ]);
      if (!made || made.shape !== shape) {
        const fresh = this.make(row);
        fresh.shape = shape;
        if (made) this.drop(made);
        this.rows.set(row.item, fresh);
        made = fresh;
      }
      made.data = row;
      put(box, made.row);
      if (made.field) {
        made.field.send = (message) => {
          this.drafts[row.item] = message;
          this.sendDrafts({ ...this.drafts });
        };
        made.field.receive(row.area);
      } else if (row.kind === "html") {
        if (made.html !== row.html) made.row.innerHTML = made.html = row.html;
      } else {
        this.words(made, row);
      }
    }
    put(this.body, this.state);
  }

  drop(made) {
    if (made.field) made.field.close();
    made.row.remove();
  }

  make(row) {
    if (row.kind === "area") {
      const box = node("div", "wb-field wb-within");
      return { row: box, field: new Field(box, row.area) };
    }
    // Made by review_ui.markup on the server, where every word of data is escaped.
    if (row.kind === "html") return { row: node("div", "wb-html stHtml") };
    const made = { row: node("div", `wb-row${row.stacked ? " wb-stacked" : ""}${row.half ? " wb-half" : ""}`) };
    made.left = node("div", "wb-left");
    if (row.lead) {
      made.fold = node("button", "wb-fold");
      made.fold.type = "button";
      made.mark = icon("expand_more");
      made.fold.append(made.mark, node("span"));
      // The words beside it fold as well; the button is what a keyboard and a screen reader meet.
      made.left.classList.add("wb-leads");
      made.left.addEventListener("click", (event) => {
        if (event.target === made.about) return;
        const item = made.data.lead.item;
        this.set(item, this.value(item) === "open" ? "shut" : "open");
      });
      made.left.append(made.fold);
    }
    made.label = node("span", "wb-words");
    made.left.append(made.label);
    made.row.append(made.left);
    if (row.kind === "radio") this.radios(made, row);
    else if (row.kind === "many") this.checks(made, row);
    else if (row.kind === "pick") this.select(made, row);
    else if (row.kind === "line") this.line(made, row);
    return made;
  }

  radios(made, row) {
    made.group = node("div", "wb-options");
    made.group.setAttribute("role", "radiogroup");
    made.buttons = row.options.map((option) => {
      const button = node("button", `wb-option${option.tone ? ` wb-${option.tone}` : ""}`);
      button.type = "button";
      button.setAttribute("role", "radio");
      if (option.icon) button.append(icon(option.icon));
      button.append(node("span", "", option.words));
      button.addEventListener("click", () => {
        const chosen = this.value(made.data.item) === option.value;
        if (!chosen) this.set(made.data.item, option.value);
        else if (made.data.clear) this.set(made.data.item, "");
      });
      button.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        event.stopPropagation();
        const all = made.data.options;
        const next = all[(all.findIndex((one) => one.value === option.value) + step + all.length) % all.length];
        this.set(made.data.item, next.value);
        made.buttons[all.indexOf(next)].focus();
      });
      made.group.append(button);
      return button;
    });
    made.row.append(made.group);
  }

  checks(made, row) {
    made.group = node("div", "wb-checks");
    made.group.setAttribute("role", "group");
    made.buttons = row.options.map((option) => {
      const label = node("label", "wb-check");
      const box = node("input");
      box.type = "checkbox";
      box.addEventListener("change", () => {
        const on = new Set(this.value(made.data.item).split("\n").filter(Boolean));
        if (box.checked) on.add(option.value);
        else on.delete(option.value);
        this.set(made.data.item, made.data.options.map((one) => one.value).filter((one) => on.has(one)).join("\n"));
      });
      label.append(box, node("span", "", option.words));
      made.group.append(label);
      return box;
    });
    made.row.append(made.group);
  }

  select(made, row) {
    made.select = node("select", "wb-select");
    made.buttons = [];
    if (!row.options.some((option) => option.value === "")) {
      const none = node("option", "", row.placeholder);
      none.value = "";
      made.select.append(none);
    }
    for (const option of row.options) {
      const one = node("option", "", option.words);
      one.value = option.value;
      made.select.append(one);
    }
    made.select.addEventListener("change", () => this.set(made.data.item, made.select.value));
    made.select.addEventListener("keydown", (event) => event.stopPropagation());
    made.row.append(made.select);
  }

  line(made, row) {
    made.input = node("input", "wb-line");
    made.input.type = "text";
    made.input.addEventListener("input", () => this.set(made.data.item, made.input.value, REST));
    made.input.addEventListener("blur", () => this.push());
    made.input.addEventListener("keydown", (event) => event.stopPropagation());
    made.said = node("div", "wb-state wb-bad");
    made.said.setAttribute("role", "status");
    made.unseen = new Unseen(made.input, `wb-${this.identity}-${row.item}`.replace(/[^A-Za-z0-9_-]/g, "-"));
    made.row.append(made.input, made.said, made.unseen.box);
  }

  // What a row says: label, chip, names for a screen reader.
  words(made, row) {
    const control = made.group || made.select || made.input;
    if (control) control.setAttribute("aria-label", row.name);
    made.row.title = row.tip || "";
    if (made.fold) {
      say(made.fold.lastChild, row.lead.words);
      made.fold.title = row.lead.tip || "";
      made.fold.setAttribute("aria-label", row.lead.name);
    }
    const pieces = row.label;
    while (made.label.children.length > pieces.length) made.label.lastChild.remove();
    pieces.forEach((piece, place) => {
      if (!made.label.children[place]) made.label.append(node("span"));
      const span = made.label.children[place];
      span.className = piece.cls;
      if (!piece.count.length) say(span, piece.text);
    });
    if (row.about && !made.about) {
      made.about = node("button", "about", "About this");
      made.about.type = "button";
      // It is heard by the composer (selection.js); it does not fold the row.
      made.left.append(made.about);
    }
    if (made.about) {
      made.about.dataset.about = row.about;
      made.about.setAttribute("aria-label", `Finding about ${row.label[0].text}`);
    }
    if (row.chip) {
      if (!made.chip) {
        made.chip = node("span");
        made.left.append(made.chip);
      }
      const [tone, symbol, said] = row.chip;
      if (made.chip.textContent !== symbol + said) made.chip.replaceChildren(icon(symbol), said);
      made.chip.className = `chip ${tone}`;
    } else if (made.chip) {
      made.chip.remove();
      made.chip = undefined;
    }
  }

  // What is chosen, what is shown of it, and what follows from it.
  paint() {
    const shows = (when) => !when || when[1].includes(this.value(when[0]));
    for (const card of this.cards.values()) card.classList.remove("wb-open");
    for (const [item, made] of this.rows) {
      const row = made.data;
      const value = this.value(item);
      made.row.hidden = !shows(row.when);
      if (made.field || row.kind === "html") continue;
      made.row.classList.toggle("wb-unsaved", Boolean(this.failed && this.entries.has(item)));
      if (row.kind === "radio") {
        let stop = made.buttons[0];
        row.options.forEach((option, place) => {
          const button = made.buttons[place];
          const on = option.value === value;
          button.setAttribute("aria-checked", on ? "true" : "false");
          button.tabIndex = -1;
          if (on) stop = button;
        });
        if (stop) stop.tabIndex = 0;
      } else if (row.kind === "many") {
        const on = new Set(value.split("\n"));
        row.options.forEach((option, place) => {
          made.buttons[place].checked = on.has(option.value);
        });
      } else if (row.kind === "pick") {
        if (made.select.value !== value) made.select.value = value;
      } else if (row.kind === "line") {
        if (document.activeElement !== made.input || !this.entries.has(item)) {
          if (made.input.value !== value) made.input.value = value;
        }
        made.unseen.look(value);
        this.clash(made, item);
      }
      if (made.fold) {
        const open = this.value(row.lead.item) === "open";
        made.fold.setAttribute("aria-expanded", open ? "true" : "false");
        say(made.mark, open ? "expand_less" : "expand_more");
        if (open && row.card) this.cards.get(row.card).classList.add("wb-open");
      }
      row.label.forEach((piece, place) => {
        if (!piece.count.length) return;
        const done = piece.count.filter((one) => this.value(one)).length;
        say(made.label.children[place], `${done} of ${piece.count.length} ${piece.text}`);
      });
    }
    say(this.state, this.failed ? "Not saved yet. Trying again" : "");
    this.body.toggleAttribute("data-waiting", this.ready().length > 0);
    this.state.className = `wb-state wb-bad${this.failed ? "" : " wb-none"}`;
  }

  // A line that is too long, or that another window has changed: said under it, and nothing is thrown away.
  clash(made, item) {
    const entry = this.entries.get(item);
    const over = entry ? this.over(entry.value) : 0;
    if (over) say(made.said, `Not saved: ${over} characters too many (${this.limit} fit).`);
    else if (!entry || !entry.conflict) say(made.said, "");
    else if (!made.said.querySelector("button")) {
      const button = (words, act) => {
        const choice = node("button", "wb-choice", words);
        choice.type = "button";
        choice.addEventListener("click", () => {
          act();
          say(made.said, "");
          this.hold();
          this.paint();
          this.push();
        });
        made.said.append(" ", choice);
      };
      say(made.said, `Not saved: another window wrote “${(this.server.get(item) || "").slice(0, 200)}”.`);
      button("Keep mine", () => {
        this.seq = Math.max(Date.now(), this.seq + 1);
        Object.assign(entry, { conflict: false, was: this.server.get(item) || "", seq: this.seq });
      });
      button("Take the other", () => {
        this.seq = Math.max(Date.now(), this.seq + 1);
        Object.assign(entry, { conflict: false, value: this.server.get(item) || "", seq: this.seq });
      });
    }
  }

  // The page leads to a place: bring it into view and put the keyboard on what is open there.
  lead(lead) {
    if (!lead || lead.number <= led) return;
    const made = this.rows.get(lead.item);
    if (!made) return;
    led = lead.number;
    requestAnimationFrame(() => {
      made.row.scrollIntoView({ block: "center" });
      const target = made.field
        ? made.field.area
        : made.select || made.input || (made.buttons && made.buttons.find((one) => one.tabIndex === 0));
      if (target) target.focus({ preventScroll: true });
    });
  }

  close() {
    this.push(true);
    for (const made of this.rows.values()) if (made.field) made.field.close();
    clearTimeout(this.late);
    document.removeEventListener("pointerdown", this.elsewhere, true);
    document.removeEventListener("keydown", this.elsewhere, true);
    window.removeEventListener("pagehide", this.leaving);
    window.removeEventListener("beforeunload", this.leaving);
    document.removeEventListener("visibilitychange", this.hiding);
  }
}

export default function (component) {
  const { parentElement, setStateValue } = component;
  const data = JSON.parse(component.data);
  const host = parentElement.querySelector(".wb-host") || parentElement;
  let sheet = sheets.get(parentElement);
  if (!sheet || sheet.identity !== data.identity) {
    if (sheet) sheet.close();
    sheet = new Sheet(host, data);
    sheets.set(parentElement, sheet);
  }
  sheet.send = (message) => setStateValue("chosen", message);
  sheet.sendDrafts = (messages) => setStateValue("drafts", messages);
  sheet.receive(data);
  return () => {
    sheet.close();
    sheets.delete(parentElement);
  };
}
