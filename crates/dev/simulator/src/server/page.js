"use strict";

const element = (id) => document.getElementById(id);
const narrow = matchMedia("(max-width: 700px)");
let customer = null;
let shown = "";
let business = false;
let autopilot = null;
let asked = 0;

async function ask(method, path, body) {
  const options = { method, headers: {} };
  if (body !== undefined) {
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const response = await fetch("/control" + path, options);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.message);
  return answer;
}

function report(error) {
  element("state").textContent = error ? String(error.message || error) : "";
}

async function refreshCustomers() {
  const { data } = await ask("GET", "/users");
  const list = element("customers");
  const names = data.map((user) => [user.user_id, user.name || user.username || user.phone || user.user_id]);
  if (list.dataset.names === JSON.stringify(names)) return;
  list.dataset.names = JSON.stringify(names);
  list.replaceChildren(...names.map(([id, name]) => new Option(name, id)));
  if (!customer && names.length) customer = names[0][0];
  if (customer && !names.some(([id]) => id === customer)) customer = names.length ? names[0][0] : null;
  list.value = customer || "";
}

function part(kind, text) {
  const made = document.createElement("div");
  made.className = kind;
  made.textContent = text;
  return made;
}

const senders = { agent: "Agent", user: "Person", api: "API", broadcast: "Broadcast", device: "Device", flow: "Flow" };

function line(entry) {
  const item = document.createElement("li");
  const side = entry.is_ours ? "business" : "customer";
  item.className = entry.is_ours === business ? `${side} mine` : side;
  if (entry.header) item.append(part("header", entry.header));
  item.append(entry.text);
  if (entry.footer) item.append(part("footer", entry.footer));
  if (entry.buttons && entry.buttons.length) {
    const choices = part("choices", "");
    for (const title of entry.buttons) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = title;
      button.addEventListener("click", () => act({ do: "press", button: title }));
      choices.append(button);
    }
    item.append(choices);
  }
  const note = document.createElement("small");
  const ticks = { accepted: "…", queued: "…", sent: "✓", delivered: "✓✓", read: "✓✓ read", failed: "failed" };
  const time = new Date(entry.at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const words = [senders[entry.sender], time, entry.status && (ticks[entry.status] || entry.status)];
  note.textContent = words.filter(Boolean).join(" ");
  item.append(note);
  return item;
}

function path(rest) {
  return `/users/${encodeURIComponent(customer)}/${rest}`;
}

async function refreshChat() {
  if (!customer) return;
  const visible = document.visibilityState === "visible";
  // The service counts requests: ask it when somebody looks, and not more often than every two seconds.
  if (business && (!visible || Date.now() - asked < 2000)) return;
  const [who, side] = [customer, business];
  if (business) asked = Date.now();
  const answer = await ask("GET", side ? path("inbox") : path(`chat?read=${visible}`));
  if (who !== customer || side !== business) return;
  const now = who + side + JSON.stringify(answer);
  if (now === shown) return;
  shown = now;
  const option = element("customers").selectedOptions[0];
  element("who").textContent = option ? option.textContent : "";
  autopilot = side ? answer.autopilot : null;
  element("handler").hidden = !side;
  element("switch").hidden = autopilot === null;
  element("switch").textContent = autopilot ? "Take over" : "Hand back";
  element("answers").textContent =
    autopilot === null ? "The customer has not written yet." : autopilot ? "The agent answers." : "A person answers.";
  element("chat").replaceChildren(...answer.data.map(line));
  element("chat").scrollTop = element("chat").scrollHeight;
}

function choose(side) {
  business = side;
  [shown, asked] = ["", 0];
  element("as-customer").setAttribute("aria-pressed", String(!side));
  element("as-business").setAttribute("aria-pressed", String(side));
  element("voice").hidden = side;
  element("handler").hidden = !side;
  element("role").textContent = side
    ? "You are a person of the business. What you write goes to the customer."
    : "You are the customer. What you write goes to the business that is connected.";
  element("chat").replaceChildren();
  report();
  refresh();
}

async function refresh() {
  try {
    await refreshCustomers();
    await refreshChat();
  } catch (error) {
    report(error);
  }
}

async function act(action) {
  await send("POST", "actions", action);
}

async function send(method, rest, body) {
  if (!customer) return report("Add a customer first.");
  try {
    await ask(method, path(rest), body);
    report();
    asked = 0;
    await refresh();
  } catch (error) {
    report(error);
  }
}

function take() {
  const field = element("text");
  const text = field.value.trim();
  field.value = "";
  field.focus();
  return text;
}

element("compose").addEventListener("submit", (event) => {
  event.preventDefault();
  const body = take();
  if (!body) return;
  if (business) send("POST", "inbox", { text: body });
  else act({ do: "text", body });
});
element("voice").addEventListener("click", () => {
  const words = take();
  if (words) act({ do: "voice_note", words });
});
element("as-customer").addEventListener("click", () => choose(false));
element("as-business").addEventListener("click", () => choose(true));
element("switch").addEventListener("click", () => send("PUT", "autopilot", { enabled: !autopilot }));
element("customers").addEventListener("change", (event) => {
  customer = event.target.value;
  asked = 0;
  refresh();
});
element("create").addEventListener("submit", async (event) => {
  event.preventDefault();
  const phone = element("phone").value.trim();
  const name = element("name").value.trim();
  try {
    const user = await ask("POST", "/users", phone ? { name, phone } : { name });
    customer = user.user_id;
    event.target.reset();
    report();
    await refresh();
    element("customers").value = customer;
  } catch (error) {
    report(error);
  }
});

function fit() {
  element("customers").size = narrow.matches ? 1 : 8;
  element("new").open = !narrow.matches;
}

narrow.addEventListener("change", fit);
fit();
ask("GET", "/inbox").then(({ connected }) => { element("sides").hidden = !connected; }, report);
refresh();
setInterval(refresh, 500);
