// Service worker: shows a stored page while the server does not answer. The page loads its address again every few seconds.
const CACHE = "seaway-down", PAGE = "/down";
const STYLES = ["seaway", "plain", "dark"].map(name => `/static/seaway/${name}.css`);

async function store() {
  await caches.delete(CACHE);
  const cache = await caches.open(CACHE);
  await cache.addAll([PAGE, ...STYLES]);
  await skipWaiting();
}

async function answer(request, stored) {
  try {
    const response = await fetch(request);
    if (![502, 504].includes(response.status)) return response; // which proxies send
  } catch { /* no server, or no network */ }
  return await caches.match(stored) ?? Response.error();
}

addEventListener("install", event => event.waitUntil(store()));
addEventListener("activate", event => event.waitUntil(clients.claim()));
addEventListener("fetch", event => {
  const path = new URL(event.request.url).pathname;
  const stored = event.request.mode === "navigate" ? PAGE : STYLES.includes(path) && path;
  if (stored) event.respondWith(answer(event.request, stored));
});
