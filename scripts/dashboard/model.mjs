// A server with the interface of OpenAI that answers from a script, so that journeys with agents take no time.
//
//   node model.mjs          prints its address, then serves until it is ended

import { createServer } from "node:http";

const OPENING = "We open from Monday to Saturday, 10:00 to 20:00, in Calle Mayor 12.";
/** What customers of a furnishing shop ask, and the answers. */
const ANSWERS = [
  [/side table/i, "Good morning! Yes, the oak side table is in stock: 129.00 €, ready to collect today or delivered in three days."],
  [/tablecloths/i, "Gladly. Six linen tablecloths in natural, 140 × 240 cm, are 234.00 € with tax. Shall I reserve them for you until Friday?"],
  [/presents|birthday/i, "Yes, we wrap presents free of charge. Tell us the date and we have it ready at the counter."],
  [/delivery to/i, "Delivery to Valencia is 6.90 € and takes two days. From 80 € on it is free."],
  [/return a lamp/i, "Yes, within 30 days with the receipt. Bring it to Calle Mayor 12, or I arrange a pick-up for 4.90 €."],
  [/child of two/i, "The wooden train set is for children from three on, because of its small parts. For a child of two I recommend the pull-along duck."],
];
const STORY = "Once upon a time there was a toy shop in Calle Mayor. ".repeat(40);
/** A story takes as long as somebody needs to interrupt it. */
const WORD_MS = 40;

/** What the model says, or the tool that it calls. */
function decide({ messages, tools = [] }) {
  const last = messages.at(-1);
  const ask = String(messages.findLast(({ role }) => role === "user")?.content ?? "");
  if (last.role === "tool") return { text: /denied|refus/i.test(String(last.content)) ? "A colleague did not approve the refund." : "The refund is on its way." };
  if (/refund/i.test(ask) && tools.some((tool) => tool.function.name === "refund")) return { call: { name: "refund", arguments: JSON.stringify({ order: Number(ask.match(/\d{3,}/)?.[0] ?? 4711), cents: 2490 }) } };
  if (/long story/i.test(ask)) return { text: STORY, isSlow: true };
  // Says when it began to answer, so that a benchmark can tell how long its words take to the screen.
  if (/what does the clock say/i.test(ask)) return { text: `${Date.now()} milliseconds have gone since the year 1970, and they go on.`, isSlow: true };
  return { text: ANSWERS.find(([question]) => question.test(ask))?.[1] ?? OPENING };
}

async function answer(request, response) {
  let body = "";
  for await (const part of request) body += part;
  if (request.url.endsWith("/models")) return response.end(JSON.stringify({ object: "list", data: [{ id: "gpt-4o-mini", object: "model" }] }));
  const asked = JSON.parse(body);
  const { text, call, isSlow } = decide(asked);
  const id = `chatcmpl-${Date.now()}`;
  const finish = call ? "tool_calls" : "stop";
  const usage = { prompt_tokens: Math.ceil(body.length / 4), completion_tokens: Math.ceil((text ?? call.arguments).length / 4), total_tokens: Math.ceil(body.length / 4) };
  const calls = call && [{ index: 0, id: `call_${id}`, type: "function", function: call }];
  if (!asked.stream) {
    response.setHeader("content-type", "application/json");
    return response.end(JSON.stringify({ id, object: "chat.completion", model: asked.model, choices: [{ index: 0, finish_reason: finish, message: { role: "assistant", content: text ?? null, ...(calls && { tool_calls: calls }) } }], usage }));
  }
  response.setHeader("content-type", "text/event-stream");
  const send = (choices, more = {}) => response.write(`data: ${JSON.stringify({ id, object: "chat.completion.chunk", model: asked.model, choices, ...more })}\n\n`);
  const delta = (delta, finish_reason = null) => send([{ index: 0, delta, finish_reason }]);
  delta({ role: "assistant" });
  if (calls) delta({ tool_calls: calls });
  for (const word of text?.split(/(?<= )/) ?? []) {
    if (response.destroyed) return undefined;
    delta({ content: word });
    if (isSlow) await new Promise((resolve) => setTimeout(resolve, WORD_MS));
  }
  delta({}, finish);
  send([], { usage });
  return response.end("data: [DONE]\n\n");
}

const server = createServer((request, response) => void answer(request, response).catch((error) => response.destroy(error)));
server.listen(Number(process.argv[2] ?? 0), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/v1`));
