//! next-plaid over a directory of embeddings (bench/search/embedding-directory.ts): builds its index once, then asks
//! every query at every setting and prints one JSON line a setting.
//!
//!   next-plaid EMBEDDINGS INDEX ROUNDS THREADS CLOCK      (RAYON_NUM_THREADS says how many threads; a clock is wall or processor)
use ndarray::Array2;
use next_plaid::{IndexConfig, MmapIndex, SearchParameters};
use std::{env, fs, path::Path, time::Instant};

const TOP_K: usize = 100;
/// Cells probed for each query token, and chunks scored in full.
const SETTINGS: [(usize, usize); 10] = [
    (1, 32), (1, 128), (2, 128), (2, 512), (4, 512), (4, 1024), (8, 1024), (8, 4096), (16, 4096), (32, 8192),
];

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let (directory, index, rounds) = (Path::new(&arguments[1]), &arguments[2], arguments[3].parse::<usize>().unwrap());
    let clock = if arguments[5] == "processor" { libc::CLOCK_PROCESS_CPUTIME_ID } else { libc::CLOCK_MONOTONIC };
    let queries = matrices(&floats(&directory.join("queries.f32")), &counts(&directory.join("query_rows.u32")));
    let started = Instant::now();
    if !Path::new(index).join("metadata.json").exists() {
        let config = IndexConfig { nbits: 4, ..IndexConfig::default() };
        fs::create_dir_all(index).unwrap();
        MmapIndex::create_with_kmeans(&documents(directory), index, &config).expect("building");
    }
    let built = started.elapsed().as_secs_f64();
    let index = MmapIndex::load(index).expect("loading");
    for (probes, full) in SETTINGS {
        let parameters = SearchParameters {
            n_full_scores: full,
            top_k: TOP_K,
            n_ivf_probe: probes,
            // The threshold is one for unit query rows; ours carry weights.
            centroid_score_threshold: None,
            ..SearchParameters::default()
        };
        let mut milliseconds = Vec::new();
        let mut found = Vec::new();
        for round in 0..=rounds {
            for query in &queries {
                let asked = milliseconds_of(clock);
                let result = index.search(query, &parameters, None).expect("searching");
                if round == 0 {
                    found.push(result.passage_ids);
                } else {
                    milliseconds.push(milliseconds_of(clock) - asked);
                }
            }
        }
        let settings = format!("{probes} cells a token, {full} scored");
        println!("{}", serde_json::json!({
            "settings": settings, "buildSeconds": built, "milliseconds": milliseconds, "found": found,
            "memoryBytes": resident(),
        }));
    }
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

fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or("VmRSS: 0 kB");
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}
