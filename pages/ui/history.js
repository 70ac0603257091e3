// An address without settings, of a first visit or the menu's, gets them from the page: that is no
// step of its own for the browser's back button.
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
