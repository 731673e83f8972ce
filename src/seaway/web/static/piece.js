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

// Return child nodes as Vue nodes. A node with a data-key stays the same when its position changes.
function described(parent) {
  const times = new Map();
  return [...parent.childNodes].map((node) => {
    if (node.nodeType !== Node.ELEMENT_NODE) return node.textContent;
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
