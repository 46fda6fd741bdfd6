//! next-plaid over a directory of embeddings (bench/search/embedding-directory.ts).
//!
//!   next-plaid EMBEDDINGS INDEXES                          builds its indexes, unless an earlier run has
//!   next-plaid EMBEDDINGS INDEXES ROUNDS THREADS CLOCK     measures them (a clock is wall or processor)
//!
//! It asks every query at every setting and prints one JSON line a setting. RAYON_NUM_THREADS says how many threads.
use ndarray::Array2;
use next_plaid::{IndexConfig, MmapIndex, SearchParameters};
use next_plaid_onnx::pool_document_embeddings;
use std::{env, fs, path::Path, path::PathBuf, time::Instant};

const TOP_K: usize = 100;
/// Bits of a component of a residual, and the factor of its own pooling of documents.
const INDEXES: [(usize, usize); 5] = [(4, 1), (2, 1), (4, 2), (4, 3), (2, 3)];
/// Cells probed for each query token, and chunks scored in full.
const SETTINGS: [(usize, usize); 7] =
    [(1, 128), (2, 512), (4, 1024), (8, 1024), (8, 4096), (16, 4096), (32, 8192)];

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let directory = Path::new(&arguments[1]);
    let place = |bits: usize, factor: usize| Path::new(&arguments[2]).join(format!("{bits}-bits-pooled-{factor}"));
    if arguments.len() == 3 {
        INDEXES.iter().for_each(|&(bits, factor)| build_once(directory, &place(bits, factor), bits, factor));
        return;
    }
    let rounds = arguments[3].parse::<usize>().unwrap();
    let clock = if arguments[5] == "processor" { libc::CLOCK_PROCESS_CPUTIME_ID } else { libc::CLOCK_MONOTONIC };
    let queries = matrices(&floats(&directory.join("queries.f32")), &counts(&directory.join("query_rows.u32")));
    for (bits, factor) in INDEXES {
        let index = place(bits, factor);
        let seconds: f64 = fs::read_to_string(stamp_of(&index)).unwrap().parse().unwrap();
        let loaded = MmapIndex::load(index.to_str().unwrap()).expect("loading");
        // Loading may write files of its own.
        let bytes = bytes_of(&index);
        for (probes, full) in SETTINGS {
            let (milliseconds, found) = measured(&loaded, &queries, rounds, clock, (probes, full));
            let pooled = if factor == 1 { String::new() } else { format!(", pooled by {factor}") };
            println!("{}", serde_json::json!({
                "settings": format!("{bits} bits{pooled}, {probes} cells a token, {full} scored"),
                "buildSeconds": seconds, "diskBytes": bytes, "milliseconds": milliseconds, "found": found,
            }));
        }
    }
}

/// The file that holds the seconds of a build that ended.
fn stamp_of(index: &Path) -> PathBuf {
    index.with_extension("built")
}

/// Builds the index, unless an earlier run has.
fn build_once(directory: &Path, index: &Path, bits: usize, factor: usize) {
    if !stamp_of(index).exists() {
        let _ = fs::remove_dir_all(index);
        fs::create_dir_all(index).unwrap();
        let started = Instant::now();
        let documents = pool_document_embeddings(documents(directory), Some(factor));
        // It keeps the vectors of a small index in full for later rebuilds, which no search needs.
        let config = IndexConfig { nbits: bits, start_from_scratch: 0, ..IndexConfig::default() };
        MmapIndex::create_with_kmeans(&documents, index.to_str().unwrap(), &config).expect("building");
        let unfinished = index.with_extension("new");
        fs::write(&unfinished, started.elapsed().as_secs_f64().to_string()).unwrap();
        fs::rename(unfinished, stamp_of(index)).unwrap();
    }
}

/// Milliseconds of every search of all rounds but a first one, and the chunks that each query finds, best first.
fn measured(
    index: &MmapIndex,
    queries: &[Array2<f32>],
    rounds: usize,
    clock: libc::clockid_t,
    (probes, full): (usize, usize),
) -> (Vec<f64>, Vec<Vec<i64>>) {
    let parameters = SearchParameters {
        n_full_scores: full,
        top_k: TOP_K,
        n_ivf_probe: probes,
        // The threshold is one for unit query rows; ours carry weights.
        centroid_score_threshold: None,
        ..SearchParameters::default()
    };
    let search = |query| index.search(query, &parameters, None).expect("searching").passage_ids;
    let found = queries.iter().map(search).collect();
    let mut milliseconds = Vec::new();
    for query in (0..rounds).flat_map(|_| queries) {
        let asked = milliseconds_of(clock);
        search(query);
        milliseconds.push(milliseconds_of(clock) - asked);
    }
    (milliseconds, found)
}

fn bytes_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.metadata().unwrap() {
            data if data.is_dir() => bytes_of(&entry.path()),
            data => data.len(),
        })
        .sum()
}

/// Unit vectors: the mean that was taken from them is added again.
fn documents(directory: &Path) -> Vec<Array2<f32>> {
    let centring = floats(&directory.join("centring.f32"));
    let vectors = fs::read(directory.join("vectors.i8")).unwrap();
    let scales = fs::read(directory.join("scales.f16")).unwrap();
    let mut values = Vec::with_capacity(vectors.len());
    for (row, vector) in vectors.chunks_exact(centring.len()).enumerate() {
        let scale = half(u16::from_le_bytes([scales[2 * row], scales[2 * row + 1]]));
        values.extend(vector.iter().zip(&centring).map(|(&value, mean)| value as i8 as f32 * scale + mean));
    }
    matrices(&values, &counts(&directory.join("chunk_rows.u32")))
}

fn matrices(values: &[f32], rows: &[usize]) -> Vec<Array2<f32>> {
    let dim = values.len() / rows.iter().sum::<usize>();
    let mut at = 0;
    rows.iter()
        .map(|&count| {
            let part = values[at..at + count * dim].to_vec();
            at += count * dim;
            Array2::from_shape_vec((count, dim), part).unwrap()
        })
        .collect()
}

fn floats(file: &Path) -> Vec<f32> {
    fs::read(file).unwrap().chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

fn counts(file: &Path) -> Vec<usize> {
    fs::read(file).unwrap().chunks_exact(4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()) as usize).collect()
}

/// Scales are positive; the smallest ones are subnormal.
fn half(bits: u16) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 10), f32::from(bits & 1023));
    if exponent == 0 { fraction * 2f32.powi(-24) } else { (fraction + 1024.0) * 2f32.powi(exponent - 25) }
}

fn milliseconds_of(clock: libc::clockid_t) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    assert_eq!(unsafe { libc::clock_gettime(clock, &mut time) }, 0);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}
