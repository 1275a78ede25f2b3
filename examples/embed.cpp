// The header in a C++ program: a model in a smart pointer, ranked answers.
// Run: build/embed MODEL "what the user says"
#define CARNN_IMPLEMENTATION
#include "../carnn.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

int main(int argc, char **argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: %s MODEL UTTERANCE\n", argv[0]);
        return 2;
    }
    carnn_error error = {};
    carnn_model *loaded = nullptr;
    carnn_session *opened = nullptr;
    carnn_source file = {argv[1], nullptr, 0};

    if (carnn_model_load(&loaded, &file, nullptr, &error)) {
        std::fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    std::unique_ptr<carnn_model, decltype(&carnn_model_free)> model(loaded, carnn_model_free);
    if (carnn_session_open(&opened, model.get(), nullptr, &error)) {
        std::fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    std::unique_ptr<carnn_session, decltype(&carnn_session_free)> session(opened,
                                                                          carnn_session_free);
    const std::string said = argv[2];
    std::vector<size_t> candidate(3);
    std::vector<double> probability(3);
    const size_t found = carnn_session_rank(session.get(), said.data(), said.size(),
                                            candidate.size(), candidate.data(),
                                            probability.data());
    for (size_t i = 0; i < found; i++)
        std::printf("%.3f  %s\n", probability[i], carnn_model_candidate(model.get(), candidate[i]));
    return 0;
}
