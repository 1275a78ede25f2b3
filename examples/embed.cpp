// The header in a C++ program: a model in a smart pointer, ranked answers.
// Run: build/embed MODEL "what the user says"
#define CARNN_IMPLEMENTATION
#include "../carnn.h"

#include <cstdio>
#include <memory>
#include <string>

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
    const carnn_text text = {said.data(), said.size()};
    carnn_prediction best; // the three most probable replies
    if (carnn_session_predict(session.get(), &text, 1, 3, &best, &error)) {
        std::fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    for (size_t i = 0; i < best.count; i++)
        std::printf("%.3f  %s\n", best.probability[i],
                    carnn_model_choice(model.get(), best.choice[i]));
    return 0;
}
