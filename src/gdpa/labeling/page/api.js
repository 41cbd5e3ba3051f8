// Requests to the server of this page. All paths are relative to the address of the page, which
// contains the token. An answer that was not received is sent again. This is safe, because setting
// the same label twice changes nothing, and an undo has a key by which the server knows it again.

const WAITS = [200, 500, 1000, 2000, 4000];
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

export class Refused extends Error {}

// Name of the annotator: one per tab, kept on reload, random until the user enters one.
export let annotator = (() => {
  const kept = sessionStorage.getItem("annotator");
  if (kept) return kept;
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  const name = Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
  sessionStorage.setItem("annotator", name);
  return name;
})();

export function rename(name) {
  if (!name) return;
  annotator = name;
  sessionStorage.setItem("annotator", name);
}

let onTrouble = () => {};
export function whenTrouble(callback) {
  onTrouble = callback;
}

async function send(path, options) {
  for (let attempt = 0; ; attempt += 1) {
    let answer = null;
    try {
      answer = await fetch(path, options);
    } catch {
      answer = null; // the server may be restarting
    }
    if (answer !== null && answer.status !== 503) {
      onTrouble("");
      const data = await answer.json();
      if (!answer.ok) throw new Refused(data.error || `error ${answer.status}`);
      return data;
    }
    onTrouble("The server does not respond. Is it still running? Trying again …");
    await pause(WAITS[Math.min(attempt, WAITS.length - 1)]);
  }
}

export const get = (path) => send(path, { cache: "no-store" });

export const post = (path, data) =>
  send(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...data, by: annotator }),
  });
