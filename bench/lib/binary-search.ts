/** The first place whose value is above, or the last place; values ascend. */
export function firstAbove(values: Float64Array, wanted: number): number {
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! > wanted) high = middle;
    else low = middle + 1;
  }
  return low;
}
