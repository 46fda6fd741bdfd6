/** Marks parts of the OpenAPI document that the interface specification does not have. */
export const addition = { 'x-maxsimd-addition': true } as const;
