// This script copies a command or a link when a visitor presses the button beside it.
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
      // Without a secure connection there is no clipboard, but a selection can be copied.
      getSelection().selectAllChildren(code);
      button.textContent = document.execCommand("copy") ? "copied" : "selected";
    }
    setTimeout(() => {
      button.textContent = "copy";
    }, 2000);
  });
}
