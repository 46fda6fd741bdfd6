/**
 * Times MaxSim kernels side by side in one process: every contender scores the same chunks in turn, round
 * after round, so that the machine's drift hits all alike. Prints one JSON document.
 *
 * Scenarios: `hot` (a set that stays in cache), `memory` (all chunks, in order). Accuracy is against the float64 MaxSim of the f32 inputs. A kernel whose
 * scores differ from those of the scalar kernel by a bit ends the program.
 *
 * Arguments: --dim D --chunks N --hot N --query-rows N --rounds N --seed N --threads N --bits B (repeated; 8, 4, 2 or 1)
 */
#include "contender.h"
#include "data.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <numeric>
#include <thread>

namespace bench {
namespace {

/** Passes over the hot set in one sample: one pass alone is too short to time. */
constexpr std::size_t hot_passes = 10;

struct Settings {
    std::size_t dim = 128, chunks = 20000, hot = 500, query_rows = 32, rounds = 5, seed = 1, threads = 1;
    std::vector<std::uint32_t> bits;
};

struct Sample {
    double wall_s, cpu_s;
};

double thread_cpu_seconds() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/** Scores `order` `repeats` times on `threads` threads, each with its own share. */
Sample run(const Contender &contender, const std::vector<std::uint32_t> &order, std::size_t repeats, std::size_t threads,
           std::vector<float> &scores) {
    std::vector<double> cpu(threads);
    const auto work = [&](std::size_t thread) {
        contender.prepare_thread();
        const std::size_t begin = order.size() * thread / threads, end = order.size() * (thread + 1) / threads;
        const double start = thread_cpu_seconds();
        for (std::size_t r = 0; r < repeats; ++r) contender.score(order.data() + begin, end - begin, scores.data() + begin);
        cpu[thread] = thread_cpu_seconds() - start;
    };
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> others;
    for (std::size_t t = 1; t < threads; ++t) others.emplace_back(work, t);
    work(0);
    for (std::thread &other : others) other.join();
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    return {wall.count(), std::accumulate(cpu.begin(), cpu.end(), 0.0)};
}

std::vector<std::uint32_t> best_of(const std::vector<double> &scores, std::size_t k) {
    std::vector<std::uint32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0u);
    k = std::min(k, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(k), order.end(),
                      [&](std::uint32_t a, std::uint32_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
    order.resize(k);
    std::sort(order.begin(), order.end());
    return order;
}

double overlap(const std::vector<double> &exact, const std::vector<double> &approximate, std::size_t k) {
    const auto a = best_of(exact, k), b = best_of(approximate, k);
    std::vector<std::uint32_t> both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    return static_cast<double>(both.size()) / static_cast<double>(a.size());
}

struct Accuracy {
    double top10, top100, relative_error;
};

Accuracy accuracy(const std::vector<double> &exact, const std::vector<float> &scores) {
    const std::vector<double> approximate(scores.begin(), scores.end());
    double error = 0;
    for (std::size_t c = 0; c < exact.size(); ++c) error += std::abs(approximate[c] - exact[c]) / std::abs(exact[c]);
    return {overlap(exact, approximate, 10), overlap(exact, approximate, 100), error / static_cast<double>(exact.size())};
}

void print_numbers(const char *name, const std::vector<double> &values) {
    std::printf("\"%s\":[", name);
    for (std::size_t i = 0; i < values.size(); ++i) std::printf("%s%.9g", i ? "," : "", values[i]);
    std::printf("]");
}

int benchmark(const Settings &settings) {
    const Chunks chunks = make_chunks(settings.chunks, settings.dim, 16, 300, settings.seed);
    const std::vector<float> query = make_query(chunks, settings.query_rows, settings.seed + 1);
    std::vector<double> exact(chunks.count());
    for (std::size_t c = 0; c < chunks.count(); ++c) exact[c] = reference_score(chunks, c, query, settings.query_rows);

    std::vector<std::unique_ptr<Contender>> contenders = maxsimd_contenders(settings.bits);
    for (auto &peer : numkong_contenders()) contenders.push_back(std::move(peer));

    std::vector<std::uint32_t> all(chunks.count()), hot;
    std::iota(all.begin(), all.end(), 0u);
    hot.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(std::min(settings.hot, all.size())));

    std::vector<Accuracy> accuracies;
    std::map<std::string, std::vector<float>> scores_of;
    std::vector<float> scores(chunks.count());
    for (auto &contender : contenders) {
        contender->load(chunks);
        contender->set_query(query.data(), settings.query_rows);
        run(*contender, all, 1, 1, scores);
        accuracies.push_back(accuracy(exact, scores));
        scores_of[contender->name()] = scores;
        std::fprintf(stderr, "packed %s\n", contender->name().c_str());
    }
    for (const auto &contender : contenders) {
        if (contender->equals().empty() || !std::memcmp(scores_of.at(contender->name()).data(), scores_of.at(contender->equals()).data(),
                                                        scores.size() * sizeof(float))) continue;
        std::fprintf(stderr, "scores of %s differ from those of %s\n", contender->name().c_str(), contender->equals().c_str());
        return 1;
    }

    // [contender][scenario] -> one sample a round.
    const char *scenarios[] = {"hot", "memory"};
    std::vector<std::map<std::string, std::vector<Sample>>> samples(contenders.size());
    for (std::size_t round = 0; round < settings.rounds; ++round) {
        for (const char *scenario : scenarios) {
            const bool is_hot = !std::strcmp(scenario, "hot");
            for (std::size_t i = 0; i < contenders.size(); ++i) {
                // Even rounds go forward, odd ones backward: no side always follows the same other.
                const std::size_t c = round % 2 == 0 ? i : contenders.size() - 1 - i;
                const std::vector<std::uint32_t> &order = is_hot ? hot : all;
                if (is_hot) run(*contenders[c], order, 1, settings.threads, scores);
                const std::size_t repeats = is_hot ? hot_passes : 1;
                Sample sample = run(*contenders[c], order, repeats, settings.threads, scores);
                const double per_pass = 1.0 / static_cast<double>(repeats);
                samples[c][scenario].push_back({sample.wall_s * per_pass, sample.cpu_s * per_pass});
            }
        }
        std::fprintf(stderr, "round %zu of %zu\n", round + 1, settings.rounds);
    }

    std::size_t hot_rows = 0;
    for (std::uint32_t c : hot) hot_rows += chunks.rows_of(c);
    std::printf("{\"dim\":%zu,\"query_rows\":%zu,\"chunks\":%zu,\"token_vectors\":%zu,\"hot_chunks\":%zu,\"hot_token_vectors\":%zu,"
                "\"threads\":%zu,\"seed\":%zu,\"contenders\":[",
                settings.dim, settings.query_rows, chunks.count(), chunks.first.back(), hot.size(), hot_rows, settings.threads,
                settings.seed);
    for (std::size_t c = 0; c < contenders.size(); ++c) {
        std::printf("%s{\"name\":\"%s\",\"family\":\"%s\",\"amx\":%s,\"packed_bytes\":%zu,\"top10\":%.6g,\"top100\":%.6g,"
                    "\"relative_error\":%.6g,\"scenarios\":{",
                    c ? "," : "", contenders[c]->name().c_str(), contenders[c]->family().c_str(),
                    contenders[c]->uses_amx() ? "true" : "false", contenders[c]->packed_bytes(), accuracies[c].top10,
                    accuracies[c].top100, accuracies[c].relative_error);
        for (std::size_t s = 0; s < 2; ++s) {
            std::vector<double> wall, cpu;
            for (const Sample &sample : samples[c][scenarios[s]]) wall.push_back(sample.wall_s), cpu.push_back(sample.cpu_s);
            std::printf("%s\"%s\":{", s ? "," : "", scenarios[s]);
            print_numbers("wall_s", wall);
            std::printf(",");
            print_numbers("cpu_s", cpu);
            std::printf("}");
        }
        std::printf("}}");
    }
    std::printf("]}\n");
    return 0;
}

} // namespace
} // namespace bench

int main(int count, char **arguments) {
    bench::Settings settings;
    const std::map<std::string, std::size_t *> flags = {
        {"--dim", &settings.dim},       {"--chunks", &settings.chunks}, {"--hot", &settings.hot},
        {"--rounds", &settings.rounds}, {"--seed", &settings.seed},     {"--threads", &settings.threads},
        {"--query-rows", &settings.query_rows},
    };
    for (int i = 1; i + 1 < count; i += 2) {
        if (!std::strcmp(arguments[i], "--bits")) {
            settings.bits.push_back(static_cast<std::uint32_t>(std::stoul(arguments[i + 1])));
            continue;
        }
        const auto flag = flags.find(arguments[i]);
        if (flag == flags.end()) {
            std::fprintf(stderr, "unknown argument %s\n", arguments[i]);
            return 2;
        }
        *flag->second = std::stoul(arguments[i + 1]);
    }
    return bench::benchmark(settings);
}
