// Watches the window of every page for Streamlit's connection; it displays nothing.

// Requests a new run when the server is available again after a lost connection.
//
// A restarted server knows nothing of an open page until the page sends a message. The server takes
// the first message for the widget values of a new visitor, not for a change. So once that run has
// ended, send again the changes that the visitor made meanwhile.
export default function (component) {
  const { setTriggerValue, parentElement } = component;
  const state = (parentElement.dpvizReconnect ??= {});
  state.ask = () => setTriggerValue("back", Date.now());
  if (state.watcher) return undefined;

  const app = document.querySelector("[data-test-connection-state]");
  if (!app) return undefined;
  let away = false;
  let next = null; // Wait until the app's script reaches this state.
  state.watcher = new MutationObserver(() => {
    const connected = app.dataset.testConnectionState === "CONNECTED";
    if (connected && away) {
      state.ask();
      next = "running";
    }
    away = !connected;
    if (away || app.dataset.testScriptState !== next) return;
    if (next === "notRunning") window.dispatchEvent(new Event("dpviz-back"));
    next = next === "running" ? "notRunning" : null;
  });
  const watched = ["data-test-connection-state", "data-test-script-state"];
  state.watcher.observe(app, { attributes: true, attributeFilter: watched });
  return () => {
    state.watcher.disconnect();
    state.watcher = undefined;
  };
}
