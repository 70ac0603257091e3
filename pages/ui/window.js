// What a page needs of the window it is in: it stands on every page and shows nothing.

// Asks for a run when the server is there again after it was away.
//
// A server that was restarted knows nothing of an open page until the page says something, and what
// is first said would be taken for what a new visitor's widgets hold, not for a change. Once that run
// has ended, what was moved meanwhile can be said again.
export default function (component) {
  const { setTriggerValue, parentElement } = component;
  const state = (parentElement.dpvizReconnect ??= {});
  state.ask = () => setTriggerValue("back", Date.now());
  if (state.watcher) return undefined;

  const app = document.querySelector("[data-test-connection-state]");
  if (!app) return undefined;
  let away = false;
  let next = null; // the state of the script that is waited for
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
