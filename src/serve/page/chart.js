// Lines over time.

const LEFT = 40;
const BOTTOM = 18;

// The least of 1, 2, 5, 10, … that is no less.
function rounded(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

export function clock(milliseconds, seconds) {
  const options = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(seconds && { second: "2-digit" }) };
  return new Date(milliseconds).toLocaleTimeString([], options);
}

export class Chart {
  // Each line has a name, a colour of the style sheet and a function from a sample to its value; `say` puts a sample into
  // words.
  constructor(canvas, output, { lines, most, say }) {
    Object.assign(this, { canvas, output, lines, most, say, samples: [] });
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    canvas.addEventListener("pointermove", (event) => this.point(event.offsetX));
    canvas.addEventListener("pointerleave", () => this.point());
  }

  set(samples) {
    this.samples = samples;
    this.draw();
  }

  point(x) {
    this.pointed = x;
    this.draw();
  }

  draw() {
    const { canvas, samples } = this;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width || !height) return;
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const style = getComputedStyle(canvas);
    const colour = (name) => style.getPropertyValue(name);
    context.font = "11px system-ui, sans-serif";
    const most = this.most ?? rounded(Math.max(1, ...samples.flatMap((sample) => this.lines.map(({ value }) => value(sample)))));
    const floor = height - BOTTOM;
    const y = (value) => floor - (value / most) * (floor - 6);
    for (const part of [0, 0.5, 1]) {
      context.fillStyle = colour("--line");
      context.fillRect(LEFT, Math.round(y(part * most)), width - LEFT, 1);
      context.fillStyle = colour("--soft");
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.fillText(Number((part * most).toFixed(1)).toLocaleString(), LEFT - 6, y(part * most));
    }
    if (!samples.length) return this.tell();
    const [first, last] = [samples[0].at_ms, samples[samples.length - 1].at_ms];
    const x = (at) => LEFT + 4 + ((at - first) / Math.max(1, last - first)) * (width - LEFT - 8);
    context.textBaseline = "bottom";
    context.textAlign = "left";
    context.fillText(clock(first), LEFT, height);
    context.textAlign = "right";
    if (last - first > 60_000) context.fillText(clock(last), width, height);
    context.lineWidth = 1.75;
    context.lineJoin = "round";
    for (const { name, value } of this.lines) {
      context.strokeStyle = context.fillStyle = colour(name);
      context.beginPath();
      samples.forEach((sample) => context.lineTo(x(sample.at_ms), y(value(sample))));
      context.stroke();
      const end = samples[samples.length - 1];
      context.beginPath();
      context.arc(x(end.at_ms), y(value(end)), 2.5, 0, 7);
      context.fill();
    }
    if (this.pointed === undefined) return this.tell(samples[samples.length - 1]);
    const distance = (sample) => Math.abs(x(sample.at_ms) - this.pointed);
    const nearest = samples.reduce((best, sample) => (distance(sample) < distance(best) ? sample : best));
    context.fillStyle = colour("--soft");
    context.fillRect(x(nearest.at_ms), 0, 1, floor);
    this.tell(nearest);
  }

  tell(sample) {
    const words = sample ? this.say(sample) : "no sample yet";
    this.output.textContent = sample && this.pointed !== undefined ? `${clock(sample.at_ms, true)} · ${words}` : words;
    this.canvas.setAttribute("aria-label", words);
  }
}
