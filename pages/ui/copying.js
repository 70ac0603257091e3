// Copies a command or a link when the button beside it is pressed.
const SAID_MS = 2000;

async function copied(code) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    return true;
  } catch (error) {
    // An address without a secure connection has no clipboard: what is selected can be copied.
    getSelection().selectAllChildren(code);
    return document.execCommand("copy");
  }
}

export default function (component) {
  const state = (component.parentElement.dpvizCopying ??= {});
  if (state.press) return undefined;
  state.press = async (event) => {
    const button = event.target.closest?.(".dp-copy button");
    if (!button) return;
    const done = await copied(button.parentElement.querySelector("code"));
    button.textContent = done ? "copied" : "selected";
    setTimeout(() => {
      button.textContent = "copy";
    }, SAID_MS);
  };
  document.addEventListener("click", state.press);
  return () => {
    document.removeEventListener("click", state.press);
    delete component.parentElement.dpvizCopying;
  };
}
