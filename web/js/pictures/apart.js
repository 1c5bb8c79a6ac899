// Round marks that would lie on each other, moved beside each other and off their points. Pure: the same points give the same places.

const ROUNDS = 600;
const TURN = 2.4; // radians between the directions of marks at one point, so that they leave it to all sides

const between = (a, b) => Math.hypot(b.x - a.x, b.y - a.y);

// Moves a and b, where they may, until they are `distance` apart; direction: that of points which lie on each other.
function push(a, b, distance, direction) {
  const now = between(a, b);
  if (now >= distance - 0.01) return false;
  const [dx, dy] = now < 0.01 ? [Math.cos(direction), Math.sin(direction)] : [(b.x - a.x) / now, (b.y - a.y) / now];
  const way = (distance - now) / (a.isFixed || b.isFixed ? 1 : 2);
  if (!a.isFixed) [a.x, a.y] = [a.x - dx * way, a.y - dy * way];
  if (!b.isFixed) [b.x, b.y] = [b.x + dx * way, b.y + dy * way];
  return true;
}

// points: [{x, y}]; radius of a mark with its rim, clear: how far the rim of a moved mark stays from the points of its crowd; box:
// {x0, x1, y0, y1} that marks stay in. Gives [{x, y, isFixed}] in the same order: a mark that touches no other stays (isFixed).
export function apart(points, { radius, clear = 5, box }) {
  const into = (value, low, high) => Math.min(Math.max(value, low + radius), high - radius);
  const isCrowded = points.map((point, index) => points.some((other, at) => at !== index && between(point, other) < 2 * radius));
  // Not from the point itself: marks in a row would only push each other to and fro along it.
  const places = points.map(({ x, y }, index) =>
    isCrowded[index] ? { x: x + Math.cos(TURN * index), y: y + Math.sin(TURN * index), isFixed: false } : { x, y, isFixed: true },
  );
  const crowd = points.filter((point, index) => isCrowded[index]).map(({ x, y }) => ({ x, y, isFixed: true }));
  const moving = places.filter((place) => !place.isFixed);
  for (let round = 0; round < ROUNDS; round += 1) {
    let isStill = true;
    const tell = (hasMoved) => (isStill &&= !hasMoved);
    moving.forEach((place, index) => {
      crowd.forEach((point, at) => tell(push(point, place, radius + clear, TURN * (index + at))));
      places.forEach((other, at) => other !== place && tell(push(other, place, 2 * radius, TURN * (index + at))));
    });
    for (const place of moving) [place.x, place.y] = [into(place.x, box.x0, box.x1), into(place.y, box.y0, box.y1)];
    if (isStill) break;
  }
  return places;
}
