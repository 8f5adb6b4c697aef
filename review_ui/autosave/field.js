// A text area that is kept on the server while it is written: debounced, flushed on blur and on leaving.
// What the server has not confirmed yet is also held in this tab, so that a reload or a restart loses nothing.
const WAIT = 500;      // ms of rest before a save
const LATE = 5000;     // ms without an answer before "Not saved", and between tries
// What a field held that was taken off the page before the server had answered: the next one of its name goes on.
const unanswered = new Map();

class Field {
  constructor(root, data) {
    this.identity = data.identity;
    this.keep = data.keep;
    this.limit = data.limit;
    this.seq = 0;
    this.acknowledged = 0;
    this.base = data.revision;
    this.build(root, data);
    this.leaving = (event) => {
      this.flush();
      if (this.dirty) {
        event.preventDefault();
        event.returnValue = "";
      }
    };
    this.hiding = () => document.visibilityState === "hidden" && this.flush();
    window.addEventListener("beforeunload", this.leaving);
    window.addEventListener("pagehide", this.leaving);
    document.addEventListener("visibilitychange", this.hiding);
  }

  build(root, data) {
    const id = `wb-${data.identity}`.replace(/[^A-Za-z0-9_-]/g, "-");
    const host = root.querySelector(".wb-field") || root;
    host.replaceChildren();
    this.label = document.createElement("label");
    this.label.className = "wb-label";
    this.label.htmlFor = id;
    this.area = document.createElement("textarea");
    this.area.id = id;
    this.area.className = "wb-area";
    this.area.spellcheck = true;
    this.head = document.createElement("div");
    this.head.className = "wb-head";
    this.state = document.createElement("span");
    this.state.className = "wb-state";
    this.state.setAttribute("role", "status");
    this.head.append(this.label, this.state);
    this.unseen = new Unseen(this.area, id);
    this.other = document.createElement("div");
    this.other.className = "wb-other";
    host.append(this.head, this.other, this.area, this.unseen.box);
    this.area.value = data.text;
    this.unseen.look(data.text);
    this.area.addEventListener("input", () => this.typed());
    this.area.addEventListener("blur", () => this.flush());
    // Shortcuts of the page are never meant while somebody writes.
    this.area.addEventListener("keydown", (event) => event.stopPropagation());
    const held = this.held();
    if (held && held.text !== data.text) {
      this.area.value = held.text;
      this.base = held.base;
      this.typed();
    } else if (held) {
      this.unhold();
    }
  }

  get dirty() {
    return this.acknowledged < this.seq;
  }

  // What is over the limit is never cut off: it stands in the field, and the field says that it is not saved.
  get over() {
    return this.area.value.length - this.limit;
  }

  slot() {
    return `wb:${this.identity}`;
  }

  held() {
    const here = unanswered.get(this.identity);
    if (here) return here;
    try {
      return JSON.parse(sessionStorage.getItem(this.slot()) || "null");
    } catch {
      return null;
    }
  }

  hold() {
    const held = { text: this.area.value, base: this.base };
    unanswered.set(this.identity, held);
    if (!this.keep) return;
    try {
      sessionStorage.setItem(this.slot(), JSON.stringify(held));
    } catch {
      // A full or forbidden storage only takes the second net away.
    }
  }

  unhold() {
    unanswered.delete(this.identity);
    try {
      sessionStorage.removeItem(this.slot());
    } catch {
      // Forbidden storage holds nothing.
    }
  }

  // Words beside the field: those of the other window while one has to choose, and one's own once they were given up.
  beside(title, words) {
    this.other.replaceChildren();
    if (!title) return;
    const head = document.createElement("div");
    head.className = "wb-other-head";
    head.textContent = title;
    const text = document.createElement("div");
    text.textContent = words || "(nothing)";
    this.other.append(head, text);
  }

  typed() {
    if (!this.conflict) this.beside("");
    this.unseen.look(this.area.value);
    this.seq = Math.max(Date.now(), this.seq + 1, (this.floor || 0) + 1);
    this.waiting = true;
    this.hold();
    clearTimeout(this.timer);
    if (this.over > 0) this.tooLong();
    else this.say("Saving", "busy");
    this.timer = setTimeout(() => this.flush(), WAIT);
  }

  tooLong() {
    const count = (n) => n.toLocaleString("en-US");
    this.say(
      `Not saved: ${count(this.over)} characters too many (${count(this.limit)} fit). Shorten it; nothing is lost.`,
      "bad",
    );
  }

  flush(force = false) {
    clearTimeout(this.timer);
    if (!this.waiting && !force) return;
    this.waiting = false;
    this.sendNow(force);
  }

  sendNow(force = false) {
    if (!this.send) {
      this.waiting = true;
      return;
    }
    clearTimeout(this.late);
    if (this.over > 0) {
      // Not the text, but that there is one which does not fit: nothing is locked or submitted without it.
      this.send({ over: this.over, seq: this.seq });
      return;
    }
    this.send({ text: this.area.value, seq: this.seq, base: this.base, force });
    this.late = setTimeout(() => {
      if (!this.dirty || this.conflict) return;
      this.say("Not saved yet. Trying again", "bad");
      this.seq += 1;
      this.sendNow(force);
    }, LATE);
  }

  receive(data) {
    this.keep = data.keep;
    this.limit = data.limit;
    this.floor = data.seq;  // what this session has answered already, whatever the clock of this machine says
    this.area.style.setProperty("--rows", data.rows);
    this.label.textContent = data.label;
    this.label.classList.toggle("wb-quiet", data.quiet);
    this.area.placeholder = data.placeholder;
    this.area.rows = data.rows;
    this.area.required = data.required;
    this.conflict = data.conflict && data.seq >= this.seq && this.seq > 0;
    if (this.conflict) {
      this.clash(data);
      return;
    }
    if (this.over > 0 && this.seq > 0) {
      this.tooLong();
    } else if (data.seq >= this.seq && this.seq > 0) {
      this.acknowledged = this.seq;
      this.base = data.revision;
      clearTimeout(this.late);
      this.unhold();
    } else if (!this.dirty && data.revision !== this.base) {
      this.base = data.revision;
      if (this.area.value !== data.text) {
        this.area.value = data.text;
        this.unseen.look(data.text);
      }
    } else if (data.seq > this.acknowledged) {
      this.acknowledged = data.seq;
      this.base = data.revision;
      this.hold();
    }
    if (!this.dirty) this.say(data.saved ? `Saved ${data.saved}` : "", "");
    else if (this.waiting && this.send) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.flush(), WAIT);
    }
  }

  clash(data) {
    clearTimeout(this.late);
    this.say("Not saved: this was changed in another window.", "bad");
    this.beside("In the other window:", data.text);
    const button = (words, act) => {
      const made = document.createElement("button");
      made.type = "button";
      made.className = "wb-choice";
      made.textContent = words;
      made.addEventListener("click", act);
      this.state.append(" ", made);
    };
    button("Keep mine", () => {
      this.seq += 1;
      this.base = data.revision;
      this.conflict = false;
      this.beside("");
      this.say("Saving", "busy");
      this.sendNow(true);
    });
    button("Take the other", () => {
      this.beside("What you had written here:", this.area.value);
      this.area.value = data.text;
      this.unseen.look(data.text);
      this.base = data.revision;
      this.seq += 1;
      this.conflict = false;
      this.say("Saving", "busy");
      this.sendNow();
    });
  }

  say(words, tone) {
    this.state.className = `wb-state ${tone ? `wb-${tone}` : ""}`;
    // Said anew only where it changed: a screen reader reads it out.
    if (this.state.textContent !== words) this.state.replaceChildren(words);
  }

  close() {
    this.flush();
    clearTimeout(this.late);
    window.removeEventListener("beforeunload", this.leaving);
    window.removeEventListener("pagehide", this.leaving);
    document.removeEventListener("visibilitychange", this.hiding);
  }
}
