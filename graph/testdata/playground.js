// A page as small as the playground's script needs one, and what is expected of it.
const assert = require("node:assert");
const element = id => ({ id, value: "", textContent: "", disabled: false, addEventListener() {}, focus() { document.activeElement = this; } });
const elements = Object.fromEntries(["token", "tenant", "run", "stop", "status", "query", "variables", "result"].map(id => [id, element(id)]));
globalThis.document = { activeElement: null, getElementById: id => elements[id], addEventListener() {} };
globalThis.sessionStorage = { getItem: () => null, setItem() {} };
let accepted, answer;
globalThis.fetch = (_, init) => { accepted = init.headers.Accept; return answer(init.signal); };

// stream answers by server-sent events and stays open until it is told to end, or is stopped.
const stream = end => signal => {
  const events = new TextEncoder().encode('event: next\ndata: {"data":{"flagged":{"id":"1"}}}\n\n');
  const body = new ReadableStream({ start(c) { c.enqueue(events); end?.(() => c.close()); signal.addEventListener("abort", () => c.error(signal.reason)); } });
  return Promise.resolve(new Response(body, { headers: { "Content-Type": "text/event-stream; charset=utf-8" } }));
};
const soon = () => new Promise(r => setTimeout(r, 20));

async function check({ subscribes, run, stop }) {
  for (const q of ["subscription { flagged { id } }", "# what is flagged\nsubscription { flagged { id } }", "fragment F on LlmInteractionAudit { id }\nsubscription S { flagged { ...F } }",
    "\uFEFF , subscription{flagged{id}}", "fragment F on X { a(b: \"}\") }subscription{flagged{id}}"]) assert(subscribes(q), q);
  for (const q of ["{ a }", "# subscription\n{ a }", "query subscription { a }", "query { subscription { id } }", "fragment subscription on X { id } query { ...subscription }",
    "query($f: F = { a: 1 }) { a }", "{ a(b: \"} subscription\") }", '{ a(b: """} \\""" subscription""") }', ""]) assert(!subscribes(q), q);

  elements.query.value = "# all\nsubscription { flagged { id } }";
  answer = stream();
  const running = run();
  assert.strictEqual(elements.status.textContent, "Running…");
  await soon();
  assert.strictEqual(accepted, "text/event-stream");
  assert(elements.result.textContent.includes('"id": "1"') && !elements.stop.disabled);
  document.activeElement = elements.stop;
  stop();
  await running;
  assert.strictEqual(elements.status.textContent, "Stopped");
  assert(elements.stop.disabled && document.activeElement === elements.run);

  let end;
  answer = stream(e => { end = e; });
  const ending = run();
  await soon();
  end();
  await ending;
  assert.strictEqual(elements.status.textContent, "Ended");

  answer = stream();
  const first = run();
  await soon();
  elements.query.value = "{ a }";
  answer = () => Promise.resolve(Response.json({ data: { a: 1 } }));
  await Promise.all([first, run()]); // the one that was given up says nothing of the one that runs
  assert.strictEqual(accepted, "application/graphql-response+json");
  assert.match(elements.status.textContent, /^200, \d+ ms$/);

  elements.variables.value = "{";
  await run();
  assert.strictEqual(elements.status.textContent, "Not sent");
  elements.variables.value = "";
  answer = () => Promise.reject(new TypeError("away"));
  await run();
  assert.strictEqual(elements.status.textContent, "Failed");
}
