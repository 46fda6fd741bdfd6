/** The axes of a plot: the highest value and zero beside it, times or days below it. */
import type { ComponentChildren } from 'preact';

export interface PlotAxesProps {
  /** The highest value, with its unit. */
  readonly top: string;
  /** From left to right, evenly spaced. */
  readonly times: readonly string[];
  readonly children: ComponentChildren;
}

export function PlotAxes({ top, times, children }: PlotAxesProps) {
  return (
    <div class="axes quiet number">
      <div class="values">
        <span>{top}</span>
        <span>0</span>
      </div>
      {children}
      <div class="times">
        {times.map((time) => (
          <span key={time}>{time}</span>
        ))}
      </div>
    </div>
  );
}
