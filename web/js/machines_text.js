// The machines to compare as one line of text, so that they fit into the form's state and its address: rows joined by ";",
// members by ",". Pure; what it cannot make a number of comes back as an error with its pointer.

const MEMBERS = ['chip', 'topology', 'chips', 'slices', 'price', 'mfu'];
const LABELS = { chips: 'Number of chips', slices: 'Slices', price: '$/chip hour', mfu: 'MFU' };
const NAMES = { price: 'price_usd_per_chip_hour', mfu: 'assumed_mfu_frac' };

// A GPU comes in no slices, so its topology is empty.
export function parseMachines(text) {
  return text
    .split(';')
    .filter(Boolean)
    .map((row) => {
      const values = row.split(',').map((value) => decodeURIComponent(value));
      return Object.fromEntries(MEMBERS.map((name, index) => [name, values[index] ?? '']));
    });
}

const plain = (value) => value.replaceAll(/[%,;]/g, encodeURIComponent);

export function writeMachines(rows) {
  return rows
    .map((row) =>
      MEMBERS.map((name) => plain(row[name] ?? ''))
        .join(',')
        .replace(/,+$/, ''),
    )
    .join(';');
}

// Which entries a machine needs: chips are counted by the shape unless any will do, and only a GPU has no slices.
export function entriesOf({ topology }) {
  return { chips: topology === '' || topology === 'any', slices: topology !== '', mfu: topology === '' };
}

// number(text, pointer, what) reads a number or reports it.
export function clustersOf(rows, number) {
  return rows.map((row, index) => {
    const used = entriesOf(row);
    const cluster = { chip: row.chip };
    if (row.topology) cluster.topology = row.topology;
    for (const name of ['chips', 'slices', 'price', 'mfu']) {
      const member = NAMES[name] ?? name;
      const wanted = used[name] ?? true;
      const needed = name === 'chips';
      if (wanted && (needed || row[name].trim()))
        cluster[member] = number(row[name], `/clusters/${index}/${member}`, LABELS[name]);
    }
    return cluster;
  });
}

export function machinesOf(clusters) {
  const text = (value) => (value === undefined || value === null ? '' : String(value));
  return writeMachines(
    clusters.map((cluster) => ({
      chip: text(cluster.chip),
      topology: text(cluster.topology ?? cluster.accelerator),
      chips: text(cluster.chips),
      slices: text(cluster.slices),
      price: text(cluster.price_usd_per_chip_hour),
      mfu: text(cluster.assumed_mfu_frac),
    })),
  );
}

// "/clusters/1/price_usd_per_chip_hour" -> the id of that control.
export function machineField(pointer) {
  const [, , index = '0', member = 'chip'] = pointer.split('/');
  const name =
    Object.keys(NAMES).find((key) => NAMES[key] === member) ?? (MEMBERS.includes(member) ? member : 'chip');
  return `machine-${index}-${name}`;
}
