// Heat map of the nodes of a cluster on a canvas, which stays fast with 10,000 nodes. Arrow keys move the focus, Enter
// or a click opens the node. Each cell is [name, percent of use (-1 without GPUs), mark, model, GPUs, tenants].
const LEVELS = 5, GAP = 1;

export default {
  template: `<section class="heat" :class="{ 'heat-wide': cells.length > 150 }" :aria-label="name">
    <div class="heat-head"><a :href="'/fleet?cluster=' + encodeURIComponent(name)">{{ name }}</a>
      <span v-if="state" class="state" :class="'state-' + state">{{ texts.state }}</span><span class="dim">{{ summary }}</span></div>
    <canvas ref="canvas" tabindex="0" role="application" :aria-label="texts.label" :style="{ cursor: at < 0 ? 'default' : 'pointer' }"
      @mousemove="point" @mouseleave="at = -1" @click="open" @auxclick="open" @focus="at = Math.max(at, 0)" @blur="at = -1" @keydown="move"></canvas>
    <div class="heat-tip" :class="{ 'heat-tip-shown': at >= 0 }" :style="place" role="status">{{ tip }}</div>
  </section>`,
  props: { name: String, state: String, summary: String, size: Number, cells: Array, models: Array, tenants: Array, texts: Object },
  data: () => ({ at: -1, columns: 1 }),
  computed: {
    tip() {
      const cell = this.cells[this.at];
      if (!cell) return "";
      const [name, use, mark, model, gpus, of] = cell;
      return [
        name,
        gpus ? `${gpus} × ${this.models[model]}` : this.texts.none,
        ...(use < 0 ? [] : [this.texts.use.replace("{use}", use)]),
        ...(of.length ? [this.texts.of.replace("{tenants}", of.map((each) => this.tenants[each]).join(", "))] : []),
        ...(mark ? [this.texts[mark]] : []),
      ].join("\n");
    },
    place() {
      const column = this.at % this.columns, row = Math.floor(this.at / this.columns);
      const side = column * 2 < this.columns ? { left: `${column * this.size}px` } : { right: `${(this.columns - column - 1) * this.size}px` };
      return { ...side, top: `${(this.$refs.canvas?.offsetTop ?? 0) + (row + 1) * this.size + 4}px` };
    },
  },
  mounted() {
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.$el);
    this.themed = new MutationObserver(() => this.draw());
    this.themed.observe(document.body, { attributeFilter: ["class"] });
    this.$watch(() => [this.cells, this.size, this.at], () => this.draw());
  },
  unmounted() {
    this.resized.disconnect();
    this.themed.disconnect();
  },
  methods: {
    draw() {
      const canvas = this.$refs.canvas, scale = window.devicePixelRatio || 1, size = this.size;
      this.columns = Math.max(1, Math.floor(this.$el.clientWidth / size));
      const rows = Math.ceil(this.cells.length / this.columns);
      canvas.style.height = `${rows * size}px`;
      canvas.width = this.$el.clientWidth * scale;
      canvas.height = rows * size * scale;
      const pen = canvas.getContext("2d"), style = getComputedStyle(document.body);
      const colour = (name) => style.getPropertyValue(`--${name}`).trim();
      const heat = Array.from({ length: LEVELS + 1 }, (_, level) => colour(`heat-${level}`));
      const bad = colour("bad"), stripe = colour("heat-stripe"), ink = colour("ink"), paper = colour("paper"), line = colour(size < 12 ? "line" : "quiet");
      pen.scale(scale, scale);
      this.cells.forEach(([, use, mark], index) => {
        const x = (index % this.columns) * size, y = Math.floor(index / this.columns) * size, side = size - GAP;
        pen.fillStyle = heat[use <= 0 ? 0 : Math.min(LEVELS, Math.ceil((use * LEVELS) / 100))];
        if (use >= 0) pen.fillRect(x, y, side, side);
        if (mark === "closed") strokes(pen, paper, x, y, side, [[0, 1, 1, 0]], 3);
        if (mark === "closed") strokes(pen, stripe, x, y, side, [[0, 1, 1, 0]]);
        if (mark === "dead") strokes(pen, bad, x, y, side, [[0, 0, 1, 1], [0, 1, 1, 0]]);
        if (mark === "unhealthy") corner(pen, bad, x, y, side);
        pen.lineWidth = 1;
        pen.strokeStyle = mark === "dead" ? bad : line;
        if (use < 0) pen.strokeRect(Math.round(x + side / 4) + 0.5, Math.round(y + side / 4) + 0.5, Math.round(side / 2) - 1, Math.round(side / 2) - 1);
        if (use === 0 || mark === "dead") pen.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
        if (index !== this.at) return;
        pen.lineWidth = 2;
        pen.strokeStyle = ink;
        pen.strokeRect(x + 1, y + 1, side - 2, side - 2);
      });
    },
    point(event) {
      const column = Math.floor(event.offsetX / this.size), row = Math.floor(event.offsetY / this.size);
      const at = row * this.columns + column;
      this.at = column < this.columns && at < this.cells.length ? at : -1;
    },
    move(event) {
      const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns, Home: -this.at, End: this.cells.length - 1 - this.at }[event.key];
      if (event.key === "Enter") this.open(event);
      if (by === undefined) return;
      event.preventDefault();
      if (this.cells[this.at + by]) this.at += by;
    },
    open(event) {
      if (this.at < 0 || event.button > 1) return;
      const address = `/fleet/${encodeURIComponent(this.name)}/${encodeURIComponent(this.cells[this.at][0])}`;
      if (event.ctrlKey || event.metaKey || event.button === 1) window.open(address, "_blank");
      else window.location.assign(address);
    },
  },
};

function strokes(pen, colour, x, y, side, lines, wide = 1) {
  pen.strokeStyle = colour;
  pen.lineWidth = wide * Math.max(1.2, side / 12);
  pen.beginPath();
  for (const [fromX, fromY, toX, toY] of lines) {
    pen.moveTo(x + fromX * side, y + fromY * side);
    pen.lineTo(x + toX * side, y + toY * side);
  }
  pen.stroke();
}

function corner(pen, colour, x, y, side) {
  pen.fillStyle = colour;
  pen.beginPath();
  pen.moveTo(x + side, y + side * 0.35);
  pen.lineTo(x + side, y + side);
  pen.lineTo(x + side * 0.35, y + side);
  pen.fill();
}
