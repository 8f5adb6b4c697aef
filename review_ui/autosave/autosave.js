// The component of one text area (field.js stands above it).
const fields = new WeakMap();

export default function (component) {
  const { data, parentElement, setStateValue } = component;
  let field = fields.get(parentElement);
  if (!field || field.identity !== data.identity) {
    if (field) field.close();
    field = new Field(parentElement, data);
    fields.set(parentElement, field);
  }
  field.send = (message) => setStateValue("draft", message);
  field.receive(data);
  return () => {
    field.close();
    fields.delete(parentElement);
  };
}
