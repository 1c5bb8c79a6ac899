import assert from 'node:assert/strict';
import test from 'node:test';
import { byChip, readPublished } from '../../../web/js/published.js';

const HEAD = ['rows', 'median', 'p90', 'max', 'bias', 'left out: median', 'p90', 'max', 'inside the interval', 'interval'];

test('published errors say percent, and no two heads are alike', () => {
  const { columns, rows } = readPublished({ head: ['chip', ...HEAD], rows: [['v6e', '23', '1.8', '6.0', '15.0', '-0.0', '3.0', '7.3', '16.3', '91', '±12']] });
  assert.deepEqual(rows[0], ['v6e', '23', '1.8 %', '6.0 %', '15.0 %', '-0.0 %', '3.0 %', '7.3 %', '16.3 %', '91 %', '±12 %']);
  const titles = columns.map(({ title }) => title);
  assert.equal(new Set(titles).size, titles.length);
  assert.deepEqual(titles.slice(6), ['left out: median', 'left out: p90', 'left out: max', 'inside the interval', '90 % interval']);
  assert.ok(columns.slice(1).every(({ number }) => number));
});

test('years are newest first, and texts are prose with their unit in the head', () => {
  const of = (year) => [year, '1', '1', '1', '1', '1', '1', '1', '1', '1', '1'];
  assert.deepEqual(readPublished({ head: ['year of the result', ...HEAD], rows: [of('2025'), of('2026'), of('2023')] }).rows.map(([year]) => year), ['2026', '2025', '2023']);
  const { columns, rows } = readPublished({ head: ['row', 'measured s', 'error', 'left out', 'ledger', 'what is missing'], rows: [['a', '8.2', '+15.0 %', '+16.3 %', 'x 1', 'y']] });
  assert.deepEqual(rows[0], ['a', '8.2', '+15.0 %', '+16.3 %', 'x 1', 'y']);
  assert.deepEqual(columns.map(({ title, prose }) => [title, prose]).slice(-2), [['largest parts of the prediction, s', true], ['what is missing', true]]);
});

test('of compiled steps those of each chip are shown and the sum of all, with percent in the cells', () => {
  const head = ['by', '', 'rows', 'median %', 'verdict right %'];
  const rows = [
    ['all', 'all rows', '9', '2.3', '97'],
    ['all', 'models that people train', '8', '2.2', '96'],
    ['chip', 'v4', '3', '2.1', '96'],
    ['family', 'gemma-2b', '1', '1.7', '100'],
  ];
  const table = readPublished(byChip({ head, rows }));
  assert.deepEqual(table.columns.map(({ title }) => title), ['chip', 'steps', 'median', 'verdict right']);
  assert.deepEqual(table.rows, [['v4', '3', '2.1 %', '96 %'], ['all chips', '9', '2.3 %', '97 %']]);
});

test('how sure a plan fits keeps its probability, and says percent of the rest', () => {
  const { columns, rows } = readPublished(byChip({ head: ['fit_probability from', 'rows', 'on average %', 'the compiler took %'], rows: [['0.98', '321', '98.4', '97.8']] }));
  assert.deepEqual(columns.map(({ title }) => title), ['probability to fit, from', 'steps', 'probability, on average', 'the compiler took']);
  assert.deepEqual(rows, [['0.98', '321', '98.4 %', '97.8 %']]);
});
