// The daemon's API. Every failure becomes a Problem with a title, a sentence and (from problem+json) errors[].

const TOKEN_KEY = 'tpu-advisor-token';

export class Problem extends Error {
  constructor({ status = 0, title, detail = '', errors = [], notShown = 0, retryAfter = null }) {
    super(title);
    Object.assign(this, { status, title, detail, errors, notShown, retryAfter });
  }
}

// Whether the daemon, or its database, may be back in a moment.
export const isAway = ({ status }) => status === 0 || status >= 500;

export function token() {
  return sessionStorage.getItem(TOKEN_KEY) ?? '';
}

export function setToken(value) {
  if (value) sessionStorage.setItem(TOKEN_KEY, value);
  else sessionStorage.removeItem(TOKEN_KEY);
}

async function problemOf(response) {
  const retryAfter = response.headers.get('Retry-After');
  let body = {};
  if ((response.headers.get('Content-Type') ?? '').includes('json')) body = await response.json().catch(() => ({}));
  const errors = Array.isArray(body.errors) ? body.errors : [];
  if (response.status === 401)
    errors.push({ pointer: '', detail: 'Enter an access token on the Plan page, under Options' });
  return new Problem({
    status: response.status,
    title: body.title ?? `The server answered ${response.status} ${response.statusText}`.trim(),
    detail: body.detail,
    errors,
    notShown: body.errors_not_shown ?? 0,
    retryAfter,
  });
}

async function send(method, path, { body, signal, accept, type = 'application/json', more }) {
  const headers = { Accept: accept, ...more };
  if (body !== undefined) headers['Content-Type'] = type;
  if (token()) headers.Authorization = `Bearer ${token()}`;
  const text = body === undefined || type === 'text/plain' ? body : JSON.stringify(body);
  let response;
  try {
    response = await fetch(path, { method, headers, signal, body: text });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem({
      title: 'The daemon cannot be reached',
      detail:
        'Check that tpu-advisor is running and that the network is up, then try again. What you entered is kept.',
    });
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

async function jsonOf(response, method, path) {
  try {
    return await response.json();
  } catch {
    throw new Problem({
      status: response.status,
      title: 'The answer is not JSON',
      detail: `${method} ${path} was answered by something that is not the daemon.`,
    });
  }
}

async function call(method, path, body, signal, type) {
  const response = await send(method, path, { body, signal, accept: 'application/json', type });
  return response.status === 204 ? null : jsonOf(response, method, path);
}

// {body, etag}: an answer, and the state that it is of.
export async function getTagged(path, signal) {
  const response = await send('GET', path, { signal, accept: 'application/json' });
  return { body: await jsonOf(response, 'GET', path), etag: response.headers.get('ETag') };
}

// A change of what is still in the state of `etag`; else the daemon refuses it with 412.
export async function patchIf(etag, path, body, signal) {
  const response = await send('PATCH', path, { body, signal, accept: 'application/json', more: etag ? { 'If-Match': etag } : {} });
  return jsonOf(response, 'PATCH', path);
}

export const get = (path, signal) => call('GET', path, undefined, signal);
export const post = (path, body, signal) => call('POST', path, body, signal);
export const put = (path, body, signal) => call('PUT', path, body, signal);
export const postText = (path, text, signal) => call('POST', path, text, signal, 'text/plain');
export const remove = (path, signal) => call('DELETE', path, undefined, signal);

// A file as it is, such as one made from a run, or from what is sent.
export async function getText(path) {
  const response = await send('GET', path, { accept: '*/*' });
  return response.text();
}

export async function postForText(path, body) {
  const response = await send('POST', path, { body, accept: '*/*' });
  return response.text();
}
