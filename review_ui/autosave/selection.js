// A button that hands over the words selected on the page; pressing it does not end the selection. And the rows of the
// page that carry a button "About this" (chart_sections.about): which one was pressed.
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
  const words = () => (document.getSelection()?.toString() || "").trim().slice(0, 4000);
  const look = () => button.toggleAttribute("disabled", !words());
  button.onclick = () => words() && setTriggerValue("quoted", words());
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
