// On a first visit or from the menu, the page adds settings to the address. This change must not be
// a step for the browser's back button.
{
  const push = history.pushState;
  if (!push.dpviz) {
    history.pushState = function (state, unused, to) {
      const adds = !location.search && new URL(to, location).pathname === location.pathname;
      return (adds ? this.replaceState : push).call(this, state, unused, to);
    };
    history.pushState.dpviz = true;
  }
}
