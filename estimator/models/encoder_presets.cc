// The configurations behind presets of encoders and encoder-decoders, as transformers counts them.
#include "estimator/models/presets.h"

namespace memfathom {
namespace {

// clang-format off
constexpr Preset kPresets[] = {
    {"modernbert-base", "ModernBERT base, 150 M",
     R"({"model_type":"modernbert","hidden_size":768,"intermediate_size":1152,"num_hidden_layers":22,"num_attention_heads":12,"vocab_size":50368})"},
    {"modernbert-large", "ModernBERT large, 396 M",
     R"({"model_type":"modernbert","hidden_size":1024,"intermediate_size":2624,"num_hidden_layers":28,"num_attention_heads":16,"vocab_size":50368})"},
    {"electra-small", "ELECTRA small, discriminator, 13.5 M",
     R"({"model_type":"electra","architectures":["ElectraForPreTraining"],"embedding_size":128,"hidden_size":256,"intermediate_size":1024,
         "num_hidden_layers":12,"num_attention_heads":4,"vocab_size":30522})"},
    {"electra-base", "ELECTRA base, discriminator, 109 M",
     R"({"model_type":"electra","architectures":["ElectraForPreTraining"],"embedding_size":768,"hidden_size":768,"intermediate_size":3072,
         "num_hidden_layers":12,"num_attention_heads":12,"vocab_size":30522})"},
    {"electra-large", "ELECTRA large, discriminator, 335 M",
     R"({"model_type":"electra","architectures":["ElectraForPreTraining"],"embedding_size":1024,"hidden_size":1024,"intermediate_size":4096,
         "num_hidden_layers":24,"num_attention_heads":16,"vocab_size":30522})"},
    {"dinov2-small", "DINOv2 small, 22.1 M",
     R"({"model_type":"dinov2","hidden_size":384,"num_hidden_layers":12,"num_attention_heads":6,"image_size":518,"patch_size":14})"},
    {"dinov2-base", "DINOv2 base, 86.6 M",
     R"({"model_type":"dinov2","hidden_size":768,"num_hidden_layers":12,"num_attention_heads":12,"image_size":518,"patch_size":14})"},
    {"dinov2-large", "DINOv2 large, 304 M",
     R"({"model_type":"dinov2","hidden_size":1024,"num_hidden_layers":24,"num_attention_heads":16,"image_size":518,"patch_size":14})"},
    {"dinov2-giant", "DINOv2 giant, 1.14 B",
     R"({"model_type":"dinov2","hidden_size":1536,"num_hidden_layers":40,"num_attention_heads":24,"image_size":518,"patch_size":14,"use_swiglu_ffn":true})"},
    {"dinov2-with-registers-small", "DINOv2 small with registers, 22.1 M",
     R"({"model_type":"dinov2_with_registers","hidden_size":384,"num_hidden_layers":12,"num_attention_heads":6,"image_size":518,"patch_size":14})"},
    {"dinov2-with-registers-base", "DINOv2 base with registers, 86.6 M",
     R"({"model_type":"dinov2_with_registers","hidden_size":768,"num_hidden_layers":12,"num_attention_heads":12,"image_size":518,"patch_size":14})"},
    {"dinov2-with-registers-large", "DINOv2 large with registers, 304 M",
     R"({"model_type":"dinov2_with_registers","hidden_size":1024,"num_hidden_layers":24,"num_attention_heads":16,"image_size":518,"patch_size":14})"},
    {"dinov2-with-registers-giant", "DINOv2 giant with registers, 1.14 B",
     R"({"model_type":"dinov2_with_registers","hidden_size":1536,"num_hidden_layers":40,"num_attention_heads":24,"image_size":518,"patch_size":14,
         "use_swiglu_ffn":true})"},
    {"siglip-base-patch16-224", "SigLIP base, both towers, 203 M",
     R"({"model_type":"siglip","text_config":{},"vision_config":{"image_size":224,"patch_size":16}})"},
    {"siglip-so400m-patch14-384", "SigLIP so400m, both towers, 878 M",
     R"({"model_type":"siglip","text_config":{"hidden_size":1152,"intermediate_size":4304,"num_hidden_layers":27,"num_attention_heads":16},
         "vision_config":{"hidden_size":1152,"intermediate_size":4304,"num_hidden_layers":27,"num_attention_heads":16,"image_size":384,"patch_size":14}})"},
    {"siglip2-base-patch16-224", "SigLIP 2 base, both towers, 375 M",
     R"({"model_type":"siglip","text_config":{"vocab_size":256000},"vision_config":{"image_size":224,"patch_size":16}})"},
    {"siglip2-so400m-patch14-384", "SigLIP 2 so400m, both towers, 1.14 B",
     R"({"model_type":"siglip","text_config":{"hidden_size":1152,"intermediate_size":4304,"num_hidden_layers":27,"num_attention_heads":16,
         "vocab_size":256000},"vision_config":{"hidden_size":1152,"intermediate_size":4304,"num_hidden_layers":27,"num_attention_heads":16,"image_size":384,
         "patch_size":14}})"},
};
// clang-format on

}  // namespace

std::span<const Preset> encoder_presets() { return kPresets; }

}  // namespace memfathom
