/**
 * Real prose for the end-to-end tests, written for this repository: short passages on unrelated
 * subjects, each with a question that only it answers. `recombine` draws longer documents from their
 * sentences with a seed, so that any amount of text can be made and made again.
 */
import type { Random } from './random.ts';

export interface Passage {
  readonly subject: string;
  readonly question: string;
  readonly text: string;
}

export const passages: readonly Passage[] = [
  {
    subject: 'lighthouse',
    question: 'How does a Fresnel lens make a lighthouse visible from far away?',
    text: 'A lighthouse of the nineteenth century owed its reach to glass rather than to flame. The stepped Fresnel lens bends the light of one small lamp into a flat beam, so that almost nothing is lost to the sky or the rocks below. Rings of prisms at the top and bottom catch the rays that an ordinary lens would waste. Keepers wound a clockwork every few hours to turn the whole apparatus on a bath of mercury.',
  },
  {
    subject: 'bread',
    question: 'Why does sourdough bread taste sour?',
    text: 'Sourdough rises without baker’s yeast. Wild yeasts and lactic acid bacteria live together in a paste of flour and water that the baker feeds each day. The bacteria make the acids that give the loaf its tang and slow the growth of mould. A long, cool rise favours acetic acid, while a warm one leaves the crumb milder.',
  },
  {
    subject: 'glacier',
    question: 'What makes glacier ice look blue?',
    text: 'Old glacier ice is blue because it swallows red light. Fresh snow is full of air and scatters every colour alike, which is why it looks white. Under the weight of later winters the bubbles are squeezed out and the crystals grow to the size of a fist. Light then travels metres through clear ice, and only the blue end of the spectrum survives the journey.',
  },
  {
    subject: 'honeybee',
    question: 'How do honeybees tell each other where flowers are?',
    text: 'A forager that has found blossoms returns to the dark comb and dances. She runs straight ahead while shaking her body, then circles back and repeats the run. The angle of the run against gravity stands for the angle between the flowers and the sun. Its length tells how far the others have to fly, and its vigour how good the nectar is.',
  },
  {
    subject: 'suspension bridge',
    question: 'What forces act in the cables of a suspension bridge?',
    text: 'The deck of a suspension bridge hangs from vertical ropes, and these hang from two great cables draped over towers. Every cable is pulled and nothing else, so steel wire serves better than bars. The towers are pressed straight down, and massive blocks at both shores hold the cable ends. Wind is the enemy: a deck too light and too flat may begin to twist in time with the eddies it sheds.',
  },
  {
    subject: 'kidney',
    question: 'How do kidneys keep the amount of water in the body steady?',
    text: 'Each kidney filters the whole blood plasma dozens of times a day. The filtrate enters a million fine tubes, and nearly all the water and salt is taken back along the way. A hormone from the pituitary gland opens water channels in the last stretch of each tube. When we drink little the hormone rises and the urine becomes scant and dark.',
  },
  {
    subject: 'printing press',
    question: 'What was new about printing with movable type?',
    text: 'Movable type turned the page into a kit of parts. A punch cutter carved each letter on steel, struck it into copper, and the caster poured hundreds of identical letters from that mould. The alloy of lead, tin and antimony melted easily and swelled slightly as it set, which gave sharp edges. After printing, the forme was broken up and the letters went back to their case for the next sheet.',
  },
  {
    subject: 'coral reef',
    question: 'Why do corals bleach when the sea gets too warm?',
    text: 'Reef corals live with algae inside their own cells. The algae pay rent in sugar, and the coral offers shelter and fertiliser in return. When the water stays too warm for some weeks the algae begin to make harmful oxygen compounds, and the coral expels them. What remains is transparent tissue over a white skeleton, starving until the guests return.',
  },
  {
    subject: 'chess',
    question: 'How do chess programs decide which moves to look at first?',
    text: 'A chess engine walks a tree of moves that grows thirtyfold with every ply. Alpha-beta pruning skips the branches that a sensible opponent would never allow, but it only saves much if good moves are tried early. Captures of large pieces by small ones come first, then moves that refuted similar positions elsewhere. A table of positions already seen keeps the program from thinking the same thought twice.',
  },
  {
    subject: 'tea',
    question: 'What is the difference between green tea and black tea?',
    text: 'Green and black tea come from the leaves of one shrub. For green tea the leaves are steamed or pan fired within hours, and the heat destroys the enzymes that would brown them. For black tea they are wilted, rolled until the juices run, and left in warm damp air until they turn the colour of copper. Oolong stops half way between the two.',
  },
  {
    subject: 'earthquake',
    question: 'How do seismologists find the place where an earthquake began?',
    text: 'An earthquake sends out two kinds of waves through the body of the earth. The pressure wave outruns the shear wave, and the delay between them grows with distance. One station can therefore draw a circle on the map, and three stations find the single point where their circles meet. Depth follows from faint echoes off the surface above the source.',
  },
  {
    subject: 'violin',
    question: 'Why does a violin have a sound post?',
    text: 'Inside a violin a small stick of spruce stands wedged between the belly and the back. French makers call it the soul of the instrument. It carries the vibration of the bridge to the back plate and keeps the top from sinking under the pull of the strings. Moved by the width of a fingernail, it changes the voice of the whole instrument.',
  },
  {
    subject: 'vaccine',
    question: 'How does the immune system remember a vaccine?',
    text: 'A vaccine shows the immune system a harmless portrait of a germ. A few of the lymphocytes that fit the portrait multiply, and most of their offspring die within weeks. The survivors are memory cells, which rest in marrow and lymph nodes for years. When the real germ arrives they answer in days rather than weeks, often before any symptom is felt.',
  },
  {
    subject: 'desert rain',
    question: 'How do plants in the desert survive years without rain?',
    text: 'Some desert plants simply wait as seeds. Their coats hold substances that stop germination, and only a proper soaking washes these away. Others are shrubs whose roots reach moisture thirty metres down. Cacti open their pores at night, store carbon dioxide as acid, and close up again before the morning heat.',
  },
  {
    subject: 'compiler',
    question: 'What does register allocation in a compiler do?',
    text: 'A program may use thousands of variables, but the processor has only a handful of registers. The compiler draws a graph in which two variables are joined when both are alive at the same moment. Colouring that graph with as many colours as there are registers gives each variable a home. Those that cannot be coloured are spilled to the stack, preferably outside the innermost loops.',
  },
  {
    subject: 'whale song',
    question: 'How far can the calls of blue whales travel under water?',
    text: 'Blue whales call at pitches below the range of human hearing. In the deep ocean there is a layer where sound travels slowest, and it traps such calls like light in a glass fibre. Listening stations have picked up one animal from more than a thousand kilometres away. The hum of shipping has shrunk that distance within a single whale’s lifetime.',
  },
  {
    subject: 'inflation',
    question: 'Why do central banks raise interest rates against inflation?',
    text: 'When prices rise too quickly a central bank makes borrowing dearer. Households put off a new car and firms put off a new hall, so demand cools and sellers hesitate to raise their prices. The cure works slowly, often over a year or more. If people expect inflation to last they build it into wages, and the rates must climb higher still.',
  },
  {
    subject: 'photosynthesis',
    question: 'Where does the oxygen made by plants come from?',
    text: 'Plants release oxygen that was once part of water. In the green membranes of the leaf, light lifts electrons out of chlorophyll, and a cluster of manganese atoms takes replacements from water molecules. Oxygen is what remains. The captured energy later builds sugar out of carbon dioxide in a cycle that needs no light at all.',
  },
  {
    subject: 'cathedral',
    question: 'What is the purpose of flying buttresses on a cathedral?',
    text: 'A stone vault pushes outward as well as down. Romanesque builders met the thrust with thick walls and small windows. The flying buttress carries it across the air to a pier outside the building, so that the wall between can be opened for glass. Pinnacles on the piers are not mere ornament, since their weight turns the thrust toward the ground.',
  },
  {
    subject: 'sleep',
    question: 'What happens in the brain during deep sleep?',
    text: 'During deep sleep the neurons of the cortex fire and fall silent together about once a second. The day’s experiences are replayed in fast forward between the hippocampus and the cortex. Fluid washes through the spaces between the cells and carries off the waste of the waking hours. A person woken from this stage is confused for several minutes.',
  },
  {
    subject: 'steel',
    question: 'How does quenching make steel hard?',
    text: 'Red hot steel holds its carbon dissolved among the iron atoms. Cooled slowly, the carbon gathers into soft layers. Plunged into oil or water there is no time for that, and the crystal is locked into a strained form called martensite. It is as hard as glass and nearly as brittle, so the smith warms it again gently to make it tough.',
  },
  {
    subject: 'migration',
    question: 'How do migrating birds find their way at night?',
    text: 'Songbirds that travel by night learn the turning of the stars while still in the nest. They note the point around which the sky revolves and take it for north. On cloudy nights they rely on a magnetic sense that seems to work through a light sensitive protein in the eye. Young birds inherit only a direction and a duration, while the old know the places.',
  },
  {
    subject: 'canal lock',
    question: 'How does a canal lock lift a boat uphill?',
    text: 'A lock is a chamber of masonry between two levels of a canal. The boat enters, the gates close behind it, and a sluice lets water in from above until the chamber is full. The mitred gates point upstream, so the pressure of the water itself keeps them shut. Nothing is pumped: each passage simply spends one chamber of water from the summit.',
  },
  {
    subject: 'perfume',
    question: 'Why does a perfume smell different after some hours?',
    text: 'A perfume is composed of materials that evaporate at different speeds. Citrus oils leave within minutes and are called the head. Flowers and spices form the heart, which lasts through the evening. Resins, woods and musks cling to the skin until the next day and hold back the lighter parts as long as they can.',
  },
  {
    subject: 'typhoon',
    question: 'What drives the winds of a tropical cyclone?',
    text: 'A tropical cyclone is a heat engine that runs on a warm sea. Moist air spirals inward, rises in the wall around the eye, and gives up the heat of condensation high above. That heat lowers the pressure at the surface and draws in more air. Over land or cold water the supply of vapour stops, and the winds fall within a day.',
  },
  {
    subject: 'clock',
    question: 'How could ships find their longitude with a clock?',
    text: 'The earth turns fifteen degrees in an hour, so a difference in time is a difference in longitude. A navigator compares local noon with the hour at home, if only he has a clock that keeps it. Pendulums fail on a rolling deck. John Harrison’s watch, with its fast balance and a strip of two metals against heat, lost a few seconds between England and Jamaica.',
  },
  {
    subject: 'mushroom',
    question: 'How do forest fungi help trees?',
    text: 'Most of a mushroom lives as threads in the soil. The threads wrap the fine roots of trees and reach into crevices that no root could enter. They deliver phosphorus and water, and receive sugar that the leaves have made. Seedlings in deep shade sometimes live on sugar that came through this web from the tall trees around them.',
  },
  {
    subject: 'telescope',
    question: 'Why are large telescope mirrors made of segments?',
    text: 'A single mirror beyond eight metres sags under its own weight and cannot be carried on any road. Segments can be made in a hall of ordinary size and replaced one at a time for fresh coating. Sensors at the edges compare neighbours thousands of times a second. Small motors then tilt every hexagon until all of them form one surface to within a few nanometres.',
  },
  {
    subject: 'vinegar',
    question: 'Which organism turns wine into vinegar?',
    text: 'Wine left open grows a grey veil. It is a colony of acetic acid bacteria, which breathe oxygen and burn alcohol only as far as acetic acid. Makers once let barrels lie half full for months to give them air. In a modern vat the wine is churned with bubbles and turns within a day, though it tastes of less.',
  },
  {
    subject: 'subway map',
    question: 'Why do underground maps ignore true distances?',
    text: 'Passengers below ground care about order and interchange, not about geography. Harry Beck, an electrical draughtsman, drew the London lines at right and half right angles as if they were a circuit. He stretched the crowded centre and squeezed the suburbs. The diagram was refused at first and then printed in a small trial that was gone within the hour.',
  },
  {
    subject: 'antibiotic',
    question: 'How do bacteria become resistant to antibiotics?',
    text: 'Among billions of bacteria a few already carry a change that blunts a drug. The antibiotic removes the rest and leaves them the field. Genes for resistance also travel on small rings of DNA from one species to another. Treatment that stops too early, or that was never needed, makes the selection stronger.',
  },
  {
    subject: 'paper',
    question: 'What did papermakers use before wood pulp?',
    text: 'For centuries paper was made from rags. Old linen was rotted, stamped to pulp in water driven mills, and lifted from the vat on a mould of brass wire. The sheets were pressed between felts and dipped in gelatine so that ink would not spread. Wood replaced rags after 1850, and its acids are the reason why books of that age crumble.',
  },
  {
    subject: 'octopus',
    question: 'How does an octopus change its colour so quickly?',
    text: 'The skin of an octopus is covered with elastic sacs of pigment. Tiny muscles around each sac pull it open under direct command of the brain, so a pattern can change in less than a second. Below lie cells that reflect light like mirrors. The animal matches hues closely although its eyes seem to have only one kind of receptor.',
  },
  {
    subject: 'rail gauge',
    question: 'Why do railways in different countries have different track widths?',
    text: 'George Stephenson built his lines at the width of the colliery wagonways he knew. Engineers elsewhere chose broader tracks for comfort or narrower ones to save money in the hills. Where the networks met, every parcel had to be carried across a platform. Most countries converted in the end, some of them in a single weekend with thousands of workers.',
  },
  {
    subject: 'database',
    question: 'What is a write-ahead log for?',
    text: 'A database that changes its pages in place may be torn apart by a power cut. With a write-ahead log every change is first appended to a file and forced to disk. Only then does the transaction count as committed. After a crash the log is read from the last checkpoint, finished transactions are repeated, and unfinished ones are left out.',
  },
  {
    subject: 'olive oil',
    question: 'What makes an olive oil extra virgin?',
    text: 'Extra virgin oil comes from the first pressing of sound olives without heat or solvents. Its free acidity must stay below a small limit, and a panel of tasters must find no fault and some fruit. The pepper one feels in the throat is oleocanthal, a sign of freshness. Light and air spoil it, so good oil is sold in dark glass.',
  },
];

const sentences = passages.flatMap((passage) => passage.text.split(/(?<=\.) /));

/** A document of about `words` words: whole sentences of all passages in a random order. */
export function recombine(random: Random, words: number): string {
  const parts: string[] = [];
  let length = 0;
  while (length < words) {
    const sentence = random.pick(sentences);
    parts.push(sentence);
    length += sentence.split(' ').length;
  }
  return parts.join(' ');
}

/** Words that are exactly one token each in any English word-piece vocabulary. */
const plainWords = ['river', 'stone', 'house', 'green', 'paper', 'water', 'light', 'north', 'music', 'table'];

/** A text of exactly `count` tokens. */
export function textOfTokens(count: number): string {
  return Array.from({ length: count }, (_, position) => plainWords[position % plainWords.length]).join(' ');
}
