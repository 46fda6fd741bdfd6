/** Moves the clock of a server forward: `TEST_CLOCK_STEP_MS` for each SIGUSR2. The server imports this file before all others. */
const stepMs = Number(process.env['TEST_CLOCK_STEP_MS']);
const now = performance.now.bind(performance);
let movedMs = 0;

performance.now = () => now() + movedMs;
process.on('SIGUSR2', () => {
  movedMs += stepMs;
  console.log('moved');
});
