// Copies a command or a link when the button beside it is pressed.
if (!document.dpvizCopies) {
  document.dpvizCopies = true;
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.(".dp-copy button");
    if (!button) return;
    const code = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "copied";
    } catch (error) {
      // An address without a secure connection has no clipboard: what is selected can be copied.
      getSelection().selectAllChildren(code);
      button.textContent = document.execCommand("copy") ? "copied" : "selected";
    }
    setTimeout(() => {
      button.textContent = "copy";
    }, 2000);
  });
}
