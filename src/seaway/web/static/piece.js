// A piece of text with figures: shown again in place, so that what a user holds, focus, a selection, how far a table
// is scrolled, what is unfolded, stays where it is. Vue, which the page has anyway, finds out what is to change.
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

// Nodes as Vue describes them. Those with a data-key are the same wherever among the others they stand later.
function described(parent) {
  const times = new Map();
  return [...parent.childNodes].map((node) => {
    if (node.nodeType !== Node.ELEMENT_NODE) return node.textContent;
    const attributes = Object.fromEntries([...node.attributes].map(({ name, value }) => [`^${name}`, value]));
    const key = node.dataset.key;
    if (key !== undefined) {
      const before = times.get(key) ?? 0; // a key that is duplicated is another one the second time
      times.set(key, before + 1);
      attributes.key = `${before} ${key}`;
    }
    return h(node.localName, attributes, described(node));
  });
}
