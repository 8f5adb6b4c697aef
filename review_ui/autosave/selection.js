// A button that hands over the words selected on the page, in which text they stand (an element with data-source) and
// what that text says before them, so that they are found where they were selected (review_ui.reviewing.quoting);
// pressing it does not end the selection. And the rows of the page that carry a button "About this"
// (chart_sections.about): which one was pressed.
const AHEAD = 200_000;

function selected() {
  const selection = document.getSelection();
  const words = (selection?.toString() || "").trim().slice(0, 4000);
  if (!words || !selection.rangeCount) return { words };
  const range = selection.getRangeAt(0);
  const inside = range.commonAncestorContainer;
  const text = (inside instanceof Element ? inside : inside.parentElement)?.closest("[data-source]");
  if (!text) return { words };
  const ahead = document.createRange();
  ahead.selectNodeContents(text);
  ahead.setEnd(range.startContainer, range.startOffset);
  return { words, source: text.dataset.source, before: ahead.toString().slice(-AHEAD) };
}

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  const host = parentElement.querySelector(".wb-quote") || parentElement;
  let button = host.querySelector("button");
  if (!button) {
    button = document.createElement("button");
    button.type = "button";
    button.className = "wb-choice";
    host.append(button);
    button.addEventListener("mousedown", (event) => event.preventDefault());
  }
  button.textContent = data.label;
  const look = () => button.toggleAttribute("disabled", !(document.getSelection()?.toString() || "").trim());
  button.onclick = () => {
    const found = selected();
    if (found.words) setTriggerValue("quoted", JSON.stringify(found));
  };
  const point = (event) => {
    const row = event.target instanceof Element && event.target.closest("[data-about]");
    if (row) setTriggerValue("pointed", row.dataset.about);
  };
  document.addEventListener("selectionchange", look);
  document.addEventListener("click", point);
  look();
  return () => {
    document.removeEventListener("selectionchange", look);
    document.removeEventListener("click", point);
  };
}
