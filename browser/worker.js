// Python runs in this worker. The worker starts Pyodide on the files from files.js, stores results
// and passes messages to browser/bridge.py. It contacts no host.
"use strict";

const CACHE = "dpviz-edition";
const HOME = "/dpviz";
const STORE = `${HOME}/.cache/dpviz`;
const LIBRARIES = "/usr/lib";

let python = null;
let bridge = null;
let compiled = null;
let waiting = []; // Messages wait here until Python is ready.

const say = (kind, more = {}) => self.postMessage({ kind, ...more });

// ------------------------------------------------------------------ files, from the worker beside

const coming = new Map(); // This maps each name to data from files.js, or to a promise of it.

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

// Answer Pyodide's requests with files already checked, so that nothing leaves the browser.
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

// browser/compiled.py calls this function before Python opens a shared library.
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

let keeping = null; // Names in the browser's storage; null if nothing can be stored.
let resting = 0;

// The format is: the index's length in four bytes, the index, and the data of all files.
function packOf(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const inside = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return { inside, data: buffer.slice(4 + length) };
}

// Store only when the app has been idle for some time, so that nobody waits for it.
function keepLater() {
  clearTimeout(resting);
  if (keeping) resting = setTimeout(() => keepCompiled().catch(() => (keeping = null)), 2000);
}

async function keepCompiled() {
  if (self.isBusy()) return; // This function runs again when the script ends.
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
    say("note", { text: "This browser stores no results for this page: a reload computes them again." });
  }
}

function synchronise(populate) {
  return new Promise((resolve, reject) =>
    python.FS.syncfs(populate, (error) => (error ? reject(error) : resolve())),
  );
}

// The bridge calls this function after each script run; only one write runs at a time.
self.keepStore = () => {
  if (!storing) return;
  storing = storing
    .then(() => synchronise(false))
    .then(() => say("stored"))
    .catch(() => {
      say("note", { text: "The browser's storage is full: new results will be lost at a reload." });
    });
};

// ------------------------------------------------------------------ called by the bridge

self.toPage = (bytes) => {
  const copy = bytes.slice();
  self.postMessage({ kind: "message", data: copy.buffer }, [copy.buffer]);
};

// Wait for 0 ms, so that the event loop can deliver waiting messages from the page.
self.turn = () => new Promise((resolve) => setTimeout(resolve, 0));

// Run scripts one after another: each expects its own thread, but the browser has only one.
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
