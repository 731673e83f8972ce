// Banner while the server does not answer: says how old the figures are, and disables whatever acts. Clicks would
// otherwise wait in the browser, and act once the server is back.
const LOST = "server-lost", OURS = "[data-lost]", ACTS = "button:not(:disabled, .menu-button)";
let received = new Date(), focused = null;

function listen() {
  if (!window.socket) return setTimeout(listen, 100);
  const receive = () => { received = new Date(); };
  socket.on("connect", receive);
  socket.onAny(receive);
  socket.io.on("ping", receive);
}

function turn(popup) {
  const lost = popup.ariaHidden === "false";
  if (lost === document.body.classList.contains(LOST)) return;
  document.body.classList.toggle(LOST, lost);
  if (lost) {
    const line = popup.lastElementChild;
    line.textContent = (line.dataset.text ??= line.textContent).replace("{time}", received.toLocaleTimeString("sv"));
    focused = document.activeElement;
    for (const each of document.querySelectorAll(ACTS)) {
      each.dataset.lost = "";
      each.disabled = true;
    }
  } else {
    for (const each of document.querySelectorAll(OURS)) {
      delete each.dataset.lost;
      each.disabled = false;
    }
    focused?.focus({ preventScroll: true });
  }
}

// Enter sends forms without a button, and follows links.
function hold(event) {
  if (event.key !== "Enter" || !document.body.classList.contains(LOST)) return;
  if (event.target.closest("a, textarea, [contenteditable]")) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

addEventListener("DOMContentLoaded", () => {
  const popup = document.getElementById("popup");
  popup.role = "alert";
  new MutationObserver(() => turn(popup)).observe(popup, { attributeFilter: ["aria-hidden"] });
  listen();
});
addEventListener("keydown", hold, true);
