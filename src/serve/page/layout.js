// Where nodes lie on the map, counted in cells of one GPU. A node is a row of its GPUs, a rack a block of such rows, and
// blocks follow each other like words of a text.

const ROWS = 36;
const BETWEEN = 2;
const ABOVE = 2;

// Racks in their order, nodes without one last. A rack of very many nodes becomes several blocks.
function blocksOf(topology) {
  const racks = new Map();
  topology.rack.forEach((rack, node) => {
    if (!racks.has(rack)) racks.set(rack, []);
    racks.get(rack).push(node);
  });
  const blocks = [];
  for (const rack of [...racks.keys()].sort((a, b) => (a < 0) - (b < 0) || a - b)) {
    const nodes = racks.get(rack);
    for (let first = 0; first < nodes.length; first += ROWS) {
      const members = nodes.slice(first, first + ROWS);
      const width = Math.max(1, ...members.map((node) => topology.devices[node]));
      blocks.push({ rack, nodes: members, width, height: members.length, x: 0, y: 0 });
    }
  }
  return blocks;
}

// Puts blocks into lines of a width; returns how wide and how high all of them are.
function wrap(blocks, width) {
  let [x, y, line, widest] = [0, ABOVE, 0, 1];
  for (const block of blocks) {
    if (x > 0 && x + block.width > width) [x, y, line] = [0, y + line + ABOVE, 0];
    [block.x, block.y] = [x, y];
    x += block.width + BETWEEN;
    line = Math.max(line, block.height);
    widest = Math.max(widest, x - BETWEEN);
  }
  return { width: widest, height: y + line };
}

// The layout with the largest cells, in whole pixels, for an area; with cells of one pixel it may not fit.
export function layout(topology, width, height, largest) {
  const blocks = blocksOf(topology);
  for (let cell = largest; ; cell--) {
    const size = wrap(blocks, Math.floor(width / cell));
    if (cell <= 1 || (size.height * cell <= height && size.width * cell <= width)) {
      const [x, y] = [new Int32Array(topology.nodes.length), new Int32Array(topology.nodes.length)];
      for (const block of blocks) {
        block.nodes.forEach((node, row) => { x[node] = block.x; y[node] = block.y + row; });
      }
      return { ...size, cell: Math.max(1, cell), blocks, x, y };
    }
  }
}
