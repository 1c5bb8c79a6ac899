// The modules that the page shares with chunks loaded later, in one chunk: without this list it would be cut into many small
// ones, by who needs what.

import './api.js';
import './ask.js';
import './bar.js';
import './config_text.js';
import './copy.js';
import './dom.js';
import './errors.js';
import './failure.js';
import './format.js';
import './inline.js';
import './measure.js';
import './measured_chart.js';
import './memory_bar.js';
import './plan_text.js';
import './runs_filter.js';
import './suggestions.js';
import './typed_number.js';
