// node pay.mjs SOCKET ORDER AMOUNT: opens an invoice, shows the requisites, waits for the money. Ends with 0 when it is paid.
import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

const [socketPath, order, amount] = process.argv.slice(2);

// One request: its status, headers and text.
const send = (method, path, body) =>
  new Promise((resolve, reject) => {
    const headers = body ? { "Content-Type": "application/json", Prefer: "wait=20" } : {};
    const sent = request({ socketPath, method, path, headers, timeout: 90_000 }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (piece) => (text += piece));
      answer.on("end", () => resolve({ status: answer.statusCode, headers: answer.headers, text }));
      answer.on("error", reject);
    });
    sent.on("timeout", () => sent.destroy(new Error("no answer in time")));
    sent.on("error", reject);
    sent.end(body && JSON.stringify(body));
  });

// One call: its status and its document. A 429 or 503 is retried after its Retry-After.
async function call(method, path, body) {
  for (let attempt = 1; ; attempt++) {
    const { status, headers, text } = await send(method, path, body);
    if (attempt === 5 || ![429, 503].includes(status)) {
      try {
        return [status, JSON.parse(text)];
      } catch {
        return [status, { detail: text }];
      }
    }
    await sleep(1000 * Number(headers["retry-after"] ?? 1));
  }
}

function fail(why) {
  console.error(why);
  process.exit(1);
}

// A problem document says what is wrong and what to do.
const refused = (status, problem) => fail(`${status} ${problem.error}: ${problem.detail}; ${problem.hint}`);

const wish = { order_id: order, amount, currency: "RUB", method: "SBP" };
const [status, invoice] = await call("POST", "/v1/invoices", wish).catch((error) =>
  fail(`tilld does not answer at ${socketPath}: ${error.message}`),
);
if (status === 202) {
  console.log("not known yet whether the service opened it: show nothing, a notification may settle it");
} else if (status < 300) {
  const requisites = JSON.stringify(invoice.requisites);
  console.log(`pay ${invoice.amount_agreed} ${invoice.currency} to ${requisites} until ${invoice.expire_at}`);
} else if (status === 409 && invoice.invoice?.outcome === "paid") {
  console.log(`order ${order}: paid`); // The customer came back after paying.
  process.exit(0);
} else {
  refused(status, invoice);
}

// 202 is "not yet", and nothing answers while tilld restarts: retry, for a quarter of an hour.
const until = Date.now() + 900_000;
while (Date.now() < until) {
  const [status, invoice] = await call("GET", `/v1/orders/${encodeURIComponent(order)}/wait?timeout=60`).catch(() => []);
  if (status === undefined) {
    await sleep(2000);
  } else if (status === 200) {
    console.log(`order ${order}: ${invoice.outcome}`);
    process.exit(invoice.outcome === "paid" ? 0 : 1);
  } else if (status !== 202) {
    refused(status, invoice);
  } else {
    await sleep(1000);
  }
}
fail(`order ${order}: still open`);
