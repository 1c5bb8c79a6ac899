// All pictures in one chunk: one each would cut what they share with the page into many small files.

import '../common.js';

export { drawFresh } from './frame.js';
export { show as layer_time } from './layer_time.js';
export { show as memory } from './memory.js';
export { otherToday } from './plan_data.js';
export { show as roofline } from './roofline.js';
export { show as scaling } from './scaling.js';
export { show as tiles } from './tiles.js';
export { show as torus } from './torus.js';
export { show as trade_off } from './trade_off.js';
export { show as waterfall } from './waterfall.js';
export { show as whatif } from './whatif.js';
