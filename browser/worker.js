// The worker that Python lives in: it starts Pyodide on the files that files.js sends, keeps results
// and hands messages to browser/bridge.py. It asks no host for anything.
"use strict";

const CACHE = "dpviz-edition";
const HOME = "/dpviz";
const STORE = `${HOME}/.cache/dpviz`;
const LIBRARIES = "/usr/lib";

let python = null;
let bridge = null;
let compiled = null;
let waiting = []; // messages that came before Python was ready

const say = (kind, more = {}) => self.postMessage({ kind, ...more });

// ------------------------------------------------------------------ files, from the worker beside

const coming = new Map(); // name -> what files.js sends under it, or a promise of that

function expectFiles(names, port) {
  const found = new Map();
  for (const name of names) coming.set(name, new Promise((resolve) => found.set(name, resolve)));
  port.onmessage = ({ data }) => found.get(data.name)(data);
}

async function take(name) {
  const { data } = await coming.get(name);
  coming.delete(name);
  return data;
}

// Pyodide asks for its files by fetch: it gets what was checked, and no request leaves.
self.fetch = async (input) => {
  const url = String(input instanceof Request ? input.url : input);
  const name = decodeURIComponent(url.slice(url.lastIndexOf("/") + 1).split("?")[0]);
  if (!coming.has(name)) throw new TypeError(`${name} is not among the files of this page`);
  const type = name.endsWith(".wasm") ? "application/wasm" : "application/octet-stream";
  return new Response(await take(name), { headers: { "Content-Type": type } });
};

async function runScript(name) {
  const url = URL.createObjectURL(new Blob([await take(name)], { type: "text/javascript" }));
  importScripts(url);
  URL.revokeObjectURL(url);
}

const folders = new Set();

function write(into, { inside, data }) {
  const bytes = new Uint8Array(data);
  for (const [name, start, end] of inside) {
    const path = `${into}/${name}`;
    const folder = path.slice(0, path.lastIndexOf("/"));
    if (!folders.has(folder)) {
      python.FS.mkdirTree(folder);
      folders.add(folder);
    }
    python.FS.writeFile(path, bytes.subarray(start, end), { canOwn: true });
  }
}

// Called before Python opens a shared library (browser/compiled.py).
self.loadLibrary = (path) => {
  const { FS, LDSO, loadDynamicLibrary } = python._module;
  if (LDSO.loadedLibsByName[path]) return;
  const near = path.slice(0, path.lastIndexOf("/"));
  const whole = (name) => {
    const places = name.startsWith("/") ? [name] : [`${near}/${name}`, `${LIBRARIES}/${name}`];
    return places.find((place) => FS.analyzePath(place).exists) ?? name;
  };
  const fs = { findObject: (name) => FS.findObject(whole(name)), readFile: (name) => FS.readFile(whole(name)) };
  loadDynamicLibrary(path, { loadAsync: false, nodelete: true, allowUndefined: true, global: false, fs }, {});
};

// ------------------------------------------------------------------ what was compiled

let keeping = null; // names in the browser's storage; null where nothing can be kept
let resting = 0;

// Four bytes with the length of an index, the index, and what it points into.
function packOf(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const inside = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return { inside, data: buffer.slice(4 + length) };
}

// When nothing has run for a while, so that nobody waits for it.
function keepLater() {
  clearTimeout(resting);
  if (keeping) resting = setTimeout(() => keepCompiled().catch(() => (keeping = null)), 2000);
}

async function keepCompiled() {
  if (self.isBusy()) return; // comes again when that ends
  const cache = await caches.open(CACHE);
  const put = async (name, bytes) => {
    await cache.put(new URL(`held/${name}`, keeping.base).href, new Response(bytes));
    say("kept", { name });
  };
  const modules = compiled.modules();
  if (modules) await put(keeping.modules, modules);
  if (keeping.library) {
    const name = keeping.library;
    keeping.library = null;
    await put(name, await compiled.library());
  }
}

// ------------------------------------------------------------------ the start

async function start({ lock, base, address, port }) {
  const archives = [...lock.pyodide.files, ...lock.bundles].filter((file) => file.into);
  expectFiles([...lock.pyodide.files, ...lock.bundles, ...lock.made].map((file) => file.name ?? file), port);
  const began = performance.now();
  const index = "pyodide-lock.json";
  coming.set(index, { data: JSON.stringify(lock.pyodide.lock) });
  const [library, modules] = lock.made;
  const standard = await take(library);
  if (standard) coming.set("python_stdlib.zip", { data: standard });
  await runScript("pyodide.js");
  await runScript("pyodide.asm.js");
  const from = new URL(lock.pyodide.from, base).href;
  python = await loadPyodide({
    indexURL: from,
    lockFileURL: new URL(index, from).href,
    env: { HOME, ...lock.environment },
  });
  for (const { name, into } of archives) {
    const archive = await coming.get(name);
    coming.delete(name);
    say("step", { text: "Unpacking" });
    write(into, archive);
  }
  await openStore();
  say("step", { text: "Starting Python" });
  const kept = await take(modules);
  const pack = kept && packOf(kept);
  if (pack) write("", pack);
  python.runPython(`import importlib, sys; sys.path.insert(0, ${JSON.stringify(lock.app)}); importlib.invalidate_caches()`);
  python.setStdin({ error: true });
  compiled = python.pyimport("browser.compiled");
  compiled.restored(pack ? pack.inside.length : 0);
  if (self.caches) keeping = { base, library: standard ? null : library, modules };
  bridge = python.pyimport("browser.bridge");
  await bridge.start(lock.app, python.toPy({ address }));
  say("ready", { seconds: (performance.now() - began) / 1000, restored: pack ? pack.inside.length : 0 });
  const early = waiting;
  waiting = null;
  for (const message of early) handle(message);
}

// ------------------------------------------------------------------ what outlives a reload

let storing = null;

async function openStore() {
  python.FS.mkdirTree(STORE);
  try {
    if (!self.indexedDB) throw new Error("no IndexedDB");
    python.FS.mount(python.FS.filesystems.IDBFS, {}, STORE);
    await synchronise(true);
    storing = Promise.resolve();
  } catch (error) {
    say("note", { text: "This browser keeps nothing here: results are worked out again after a reload." });
  }
}

function synchronise(populate) {
  return new Promise((resolve, reject) =>
    python.FS.syncfs(populate, (error) => (error ? reject(error) : resolve())),
  );
}

// Called by the bridge after each run; one write at a time.
self.keepStore = () => {
  if (!storing) return;
  storing = storing
    .then(() => synchronise(false))
    .then(() => say("stored"))
    .catch(() => {
      say("note", { text: "The browser's storage is full: new results will not outlive a reload." });
    });
};

// ------------------------------------------------------------------ called by the bridge

self.toPage = (bytes) => {
  const copy = bytes.slice();
  self.postMessage({ kind: "message", data: copy.buffer }, [copy.buffer]);
};

// A turn of the event loop; 0 lets messages of the page in.
self.turn = () => new Promise((resolve) => setTimeout(resolve, 0));

// Scripts run one after the other: each was started as a thread, and there is one thread.
let scripts = Promise.resolve();
let running = 0;
self.isBusy = () => running > 0;
self.runLater = (proxy) => {
  const script = proxy.copy();
  running += 1;
  scripts = scripts
    .then(self.turn)
    .then(() => (script.callPromising && WebAssembly.Suspending ? script.callPromising() : script()))
    .catch((error) => console.error(error))
    .finally(() => {
      script.destroy();
      running -= 1;
      keepLater();
    });
};

// ------------------------------------------------------------------ messages of the page

function handle(message) {
  try {
    if (message.kind === "connect") {
      bridge.connect();
      say("open");
    } else if (message.kind === "disconnect") {
      bridge.disconnect();
    } else if (message.kind === "message") {
      bridge.receive(python.toPy(new Uint8Array(message.data)));
    } else if (message.kind === "upload") {
      bridge.upload(message.session, message.file, message.name, message.type, python.toPy(new Uint8Array(message.data)));
      say("answer", { id: message.id });
    } else if (message.kind === "forget") {
      bridge.forget(message.session, message.file);
      say("answer", { id: message.id });
    } else if (message.kind === "media") {
      const found = bridge.media(message.name);
      const [data, type, name] = found ? found.toJs() : [null, "", ""];
      if (found) found.destroy();
      say("answer", { id: message.id, data, type, name });
    } else if (message.kind === "memory") {
      const bytes = python._module.HEAP8.length;
      say("answer", { id: message.id, data: bytes });
    }
  } catch (error) {
    console.error(error);
    if (message.id !== undefined) say("answer", { id: message.id, error: "Python did not answer." });
  }
}

function sentence(error) {
  if (error instanceof RangeError || /out of memory/i.test(String(error))) {
    return "This browser has not enough free memory for Python: close other tabs and reload.";
  }
  return "This browser could not start Python; an up-to-date Chromium, Firefox or Safari can.";
}

self.onmessage = ({ data }) => {
  if (data.kind === "start") {
    start(data).catch((error) => {
      say("failed", { text: sentence(error), cause: `${error}\n${error.stack ?? ""}` });
    });
  } else if (waiting) {
    waiting.push(data);
  } else {
    handle(data);
  }
};
