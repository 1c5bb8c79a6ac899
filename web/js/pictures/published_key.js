// The name of a kernel's shape among published tuning sweeps: read by build.mjs, which makes the list, and by the page.

const ATTENTION = [['batch', () => 1], ['q_heads'], ['kv_heads', (shape) => shape.q_heads], ['q_len'], ['kv_len', (shape) => shape.q_len], ['head_dim_qk'], ['head_dim_v', (shape) => shape.head_dim_qk], ['causal', () => true]];
const GROUPED = [['m'], ['k'], ['n'], ['num_groups']];
const LOSS = [['tokens'], ['emb_dim'], ['vocab']];
const SIZES = { splash_fwd: ATTENTION, splash_fwd_residuals: ATTENTION, splash_bwd_fused: ATTENTION, gmm: GROUPED, tgmm: GROUPED, linear_xent: LOSS, linear_xent_bwd: LOSS };
const HARMLESS = ['distribution', 'group_sizes']; // published groups have sizes of their own

// Null where the shape has more than published sweeps have: another format, a window, shards. Pure.
export function publishedKey(chip, kernel, shape) {
  const sizes = SIZES[kernel];
  if (!sizes) return null;
  const own = new Set([...sizes.map(([name]) => name), ...HARMLESS]);
  const isPlain = Object.entries(shape).every(([name, value]) => own.has(name) || value === 'bfloat16' || value === null);
  return isPlain ? [chip, kernel, ...sizes.map(([name, usual]) => String(shape[name] ?? usual?.(shape)))].join(' ') : null;
}
