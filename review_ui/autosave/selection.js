// A button that hands over the words selected on the page. Pressing it does not end the selection.
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
  document.addEventListener("selectionchange", look);
  look();
  return () => document.removeEventListener("selectionchange", look);
}
