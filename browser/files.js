// This worker supplies files. It loads each file once, checks and stores it, and unpacks archives
// while Python starts in the worker beside it (worker.js).
"use strict";

const CACHE = "dpviz-edition";
// Nothing in the browser reads these files of Pyodide's packages.
const UNREAD = /(^|\/)(tests?|include)\/|\.(h|hh|hpp|c|cc|cpp|pxd|pyx|pxi|pyi|tp)$/;

const say = (kind, more = {}) => self.postMessage({ kind, ...more });
let python = null; // This is the folder into which files are unpacked.

class CannotRun extends Error {}

function sentence(error) {
  if (error instanceof CannotRun) return error.message;
  if (error instanceof RangeError || /out of memory/i.test(String(error))) {
    return "This browser has not enough free memory for Python: close other tabs and reload.";
  }
  return "This browser could not unpack Python; an up-to-date Chromium, Firefox or Safari can.";
}

function wrong(file) {
  return new CannotRun(
    `${file.name} is not the file on record (its sha256 differs): the folder was changed, or ` +
      "a host on the way changes files. The file was not run.",
  );
}

function hex(buffer) {
  return [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

function integrityOf(sha256) {
  const bytes = sha256.match(/../g).map((pair) => parseInt(pair, 16));
  return `sha256-${btoa(String.fromCharCode(...bytes))}`;
}

// ------------------------------------------------------------------ files, by bytes

class Loader {
  constructor(files, made, base) {
    this.base = base;
    this.total = files.reduce((sum, file) => sum + file.bytes, 0);
    this.loaded = 0;
    this.kept = 0;
    this.cache = null;
    this.full = false;
    this.last = 0;
    this.wanted = new Set([...files.map((file) => file.sha256), ...made].map((name) => this.keyOf(name)));
  }

  async open() {
    // Without a secure context, `caches` does not exist; then the browser's own cache serves.
    if (!self.caches) return;
    try {
      this.cache = await caches.open(CACHE);
      for (const request of await this.cache.keys()) {
        if (!this.wanted.has(request.url)) await this.cache.delete(request);
      }
    } catch (error) {
      this.cache = null;
    }
  }

  keyOf(name) {
    return new URL(`held/${name}`, this.base).href;
  }

  async ofStorage(name) {
    const found = this.cache && (await this.cache.match(this.keyOf(name)));
    return found ? found.arrayBuffer() : null;
  }

  report(force = false) {
    const now = performance.now();
    if (!force && now - this.last < 80) return;
    this.last = now;
    say("progress", { loaded: this.loaded, total: this.total, kept: this.kept });
  }

  async get(file) {
    const found = await this.ofStorage(file.sha256);
    if (found && found.byteLength === file.bytes) {
      this.loaded += file.bytes;
      this.kept += file.bytes;
      this.report();
      return found;
    }
    const bytes = await this.fetched(file);
    await this.check(file, bytes);
    await this.keep(file, bytes);
    return bytes;
  }

  async fetched(file) {
    // Without a secure context, crypto.subtle does not exist; then the browser checks the digest.
    const options = self.crypto && crypto.subtle ? {} : { integrity: integrityOf(file.sha256) };
    let answer;
    try {
      answer = await fetch(new URL(file.url, this.base), options);
    } catch (error) {
      throw new CannotRun(`${file.name} could not be loaded, as the server did not answer: check the connection and reload.`);
    }
    if (!answer.ok) {
      throw new CannotRun(`${file.name} could not be loaded: the server answered ${answer.status}.`);
    }
    const bytes = new Uint8Array(file.bytes);
    const reader = answer.body.getReader();
    let at = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      if (at + value.length > bytes.length) throw wrong(file);
      bytes.set(value, at);
      at += value.length;
      this.loaded += value.length;
      this.report();
    }
    if (at !== bytes.length) throw wrong(file);
    return bytes.buffer;
  }

  async check(file, bytes) {
    if (!self.crypto || !crypto.subtle) return;
    if (hex(await crypto.subtle.digest("SHA-256", bytes)) !== file.sha256) throw wrong(file);
  }

  async keep(file, bytes) {
    if (!this.cache || this.full) return;
    try {
      await this.cache.put(this.keyOf(file.sha256), new Response(bytes));
    } catch (error) {
      if (this.full) return; // Report only once that the browser's storage is full.
      this.full = true;
      say("note", {
        text:
          "The browser's storage for this site is full or closed, so the next visit loads " +
          "all files again.",
      });
    }
  }
}

// ------------------------------------------------------------------ archives

// Read the members of a zip file from the directory at the file's end.
function* members(file, buffer) {
  const view = new DataView(buffer);
  let end = buffer.byteLength - 22;
  while (end >= 0 && view.getUint32(end, true) !== 0x06054b50) end -= 1;
  if (end < 0) throw wrong(file);
  let at = view.getUint32(end + 16, true);
  for (let left = view.getUint16(end + 10, true); left > 0; left -= 1) {
    const length = view.getUint16(at + 28, true);
    const name = new TextDecoder().decode(new Uint8Array(buffer, at + 46, length));
    const local = view.getUint32(at + 42, true);
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    yield {
      name,
      packed: view.getUint16(at + 10, true) !== 0,
      bytes: new Uint8Array(buffer, start, view.getUint32(at + 20, true)),
      size: view.getUint32(at + 24, true),
    };
    at += 46 + length + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
}

async function inflated(bytes) {
  const stream = new DecompressionStream("deflate-raw");
  const writer = stream.writable.getWriter();
  writer.write(bytes).catch(() => {}); // An error of the stream appears when the file is read.
  writer.close().catch(() => {});
  return new Uint8Array(await new Response(stream.readable).arrayBuffer());
}

// Join all files of an archive in one buffer, and record each file's position.
async function unpacked(file, buffer) {
  const found = [...members(file, buffer)].filter(
    ({ name }) => !name.endsWith("/") && !(file.slim && UNREAD.test(name)),
  );
  const data = new Uint8Array(found.reduce((sum, each) => sum + each.size, 0));
  const files = [];
  let at = 0;
  for (const { name, size } of found) {
    files.push([name, at, at + size]);
    at += size;
  }
  await Promise.all(
    found.map(async ({ packed, bytes }, index) => {
      data.set(packed ? await inflated(bytes) : bytes, files[index][1]);
    }),
  );
  return { files, data: data.buffer };
}

// ------------------------------------------------------------------ in the order they are needed

async function start({ lock, base, port }) {
  python = port;
  const from = new URL(lock.pyodide.from, base);
  const files = [
    ...lock.pyodide.files.map((file) => ({ ...file, url: new URL(file.name, from).href })),
    ...lock.bundles,
  ];
  const loader = new Loader(files, lock.made, base);
  await loader.open();
  loader.report(true);
  for (const name of lock.made) {
    const data = await loader.ofStorage(name);
    python.postMessage({ name, data }, data ? [data] : []);
  }
  await Promise.all(
    files.map(async (file) => {
      const bytes = await loader.get(file);
      if (!file.into) {
        python.postMessage({ name: file.name, data: bytes }, [bytes]);
        return;
      }
      const { files: inside, data } = await unpacked(file, bytes);
      python.postMessage({ name: file.name, data, inside }, [data]);
    }),
  );
  loader.report(true);
}

self.onmessage = ({ data }) => {
  start(data).catch((error) => {
    say("failed", { text: sentence(error), cause: `${error}\n${error.stack ?? ""}` });
  });
};
