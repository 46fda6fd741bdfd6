/** Imported first by a server of the tests: each SIGUSR2 moves its clock `TEST_CLOCK_STEP_MS` forward, as if it had waited. */
const stepMs = Number(process.env['TEST_CLOCK_STEP_MS']);
const now = performance.now.bind(performance);
let movedMs = 0;

performance.now = () => now() + movedMs;
process.on('SIGUSR2', () => {
  movedMs += stepMs;
  console.log('moved');
});
