// Fragment of HTML. Vue, which the page already loads, applies only the differences, so that focus, selection,
// scroll positions and unfolded parts stay.
import { Fragment, h, render } from "vue";

export default {
  template: "<div></div>",
  props: { innerHTML: String },
  mounted() {
    this.show();
  },
  updated() {
    this.show();
  },
  methods: {
    show() {
      if (this.innerHTML === this.shown) return;
      this.shown = this.innerHTML;
      const read = document.createElement("template");
      read.innerHTML = this.innerHTML;
      const focused = document.activeElement;
      render(h(Fragment, described(read.content)), this.$el);
      if (focused !== document.activeElement && this.$el.contains(focused)) focused.focus({ preventScroll: true });
    },
  },
};

// Moments in attributes, as the server writes them.
const MOMENT = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ/, MOMENTS = new RegExp(MOMENT, "g");

// Moments in texts.
const STATED = /(\d{4}-\d\d-\d\d) (\d\d:\d\d)(:\d\d)? UTC/g;

const two = (number) => String(number).padStart(2, "0");
const dayOf = (at) => `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
const clockOf = (at) => `${two(at.getHours())}:${two(at.getMinutes())}`;
const utcOf = (at) => `${at.toISOString().slice(0, 19).replace("T", " ")} UTC`;
const FORMS = {
  second: (at) => `${dayOf(at)} ${clockOf(at)}:${two(at.getSeconds())}`,
  minute: (at) => (clockOf(at) === "00:00" ? dayOf(at).slice(5) : clockOf(at)),
  day: (at) => dayOf(at).slice(5) + (clockOf(at) === "00:00" ? "" : ` ${clockOf(at)}`),
};
const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;

// Return a moment in local time and UTC, which are the same in some time zones.
function both(text) {
  const at = new Date(text.replace(" ", "T"));
  return at.getTimezoneOffset() ? `${FORMS.second(at)} (${utcOf(at)})` : utcOf(at);
}

// Return a text, such as a reason, with its moments in local time.
function inLocalTime(text) {
  return text.replace(STATED, (moment, day, clock, seconds) => {
    const at = new Date(`${day}T${clock}${seconds ?? ":00"}Z`);
    return at.getTimezoneOffset() ? FORMS.second(at).slice(0, moment.length - " UTC".length) : moment;
  });
}

// Write a moment in local time, with UTC in the tooltip.
function localise(node) {
  const at = new Date(node.dateTime), form = FORMS[node.dataset.form];
  if (form) node.textContent = form(at);
  node.title = at.getTimezoneOffset() ? `${form ? "" : `${FORMS.second(at)} ${zone} · `}${utcOf(at)}` : utcOf(at);
}

// Return child nodes as Vue nodes. A node with a data-key stays the same when its position changes.
function described(parent) {
  const times = new Map();
  return [...parent.childNodes].map((node) => {
    if (node.nodeType !== Node.ELEMENT_NODE) return ["PRE", "CODE"].includes(parent.nodeName) ? node.textContent : inLocalTime(node.textContent);
    if (node.localName === "time") localise(node);
    for (const name of ["title", "data-tip", "aria-label"]) {
      if (MOMENT.test(node.getAttribute(name) ?? "")) node.setAttribute(name, node.getAttribute(name).replace(MOMENTS, both));
    }
    const attributes = Object.fromEntries([...node.attributes].map(({ name, value }) => [`^${name}`, value]));
    const key = node.dataset.key;
    if (key !== undefined) {
      const before = times.get(key) ?? 0; // makes repeated keys unique
      times.set(key, before + 1);
      attributes.key = `${before} ${key}`;
    }
    return h(node.localName, attributes, described(node));
  });
}
