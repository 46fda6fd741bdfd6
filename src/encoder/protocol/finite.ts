/** Whether all values are numbers and none is infinite, at the price of one addition each. */
export function areFinite(values: Float32Array): boolean {
  // Zero times a finite number is zero, times any other it is not a number: one sum instead of thousands of calls.
  let zero = 0;
  for (let i = 0; i < values.length; i++) zero += values[i]! * 0;
  return zero === 0;
}
