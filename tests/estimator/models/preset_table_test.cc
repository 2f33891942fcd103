// Every preset by name, with the parameters its library counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "estimator/models/factory.h"
#include "estimator/models/model_list.h"
#include "estimator/models/resolve_model.h"
#include "kernels/devices/dry/dry_device.h"
#include "kernels/framework/layers/builder.h"
#include "kernels/memory/allocator/bare_allocator.h"

namespace memfathom {
namespace {

std::int64_t parameters_of(const std::string& preset) {
  DryDevice device;
  BareAllocator allocator;
  Session session(device, allocator, device.workspaces(), FrameworkPolicy{});
  Builder builder(session, {.deferred = true});
  ModelSettings settings;
  settings.sequence_length = 8;
  settings.num_images = 0;
  Node model = Node::map();
  model.set("preset", Node::string(preset));
  std::vector<std::string> assumptions;
  make_network(builder, resolve_model(model), settings, assumptions);
  return builder.parameter_count();
}

struct ReferenceModel {
  const char* name;
  std::int64_t parameters;
};

// As transformers 5.22 and 5.23, diffusers 0.42, torchvision 0.29, timm 1.0.30 and
// neuraloperator 2.0 count the models of these names; VGGT's is counted here, since no installed
// library has it.
constexpr ReferenceModel kTable[] = {
    {"phi-1.5", 1418270720},
    {"qwen1.5-moe-a2.7b", 14315784192},
    {"c4ai-command-r7b", 8028033024},
    {"glm-4.5-air", 106852245504},
    {"deepseek-v2.5", 235741434880},
    {"cogvideox-2b", 1693783872},
    {"cogvideox-5b", 5570283072},
    {"cogvideox-vae", 215583907},
    {"t5-v1.1-xxl-encoder", 4762310656},
    {"vggt-1b", 1190596120},
    {"llama-2-7b", 6738415616},
    {"llama-2-13b", 13015864320},
    {"llama-2-70b", 68976648192},
    {"llama-3-8b", 8030261248},
    {"llama-3-70b", 70553706496},
    {"llama-3.2-1b", 1235814400},
    {"llama-3.2-3b", 3212749824},
    {"tinyllama-1.1b", 1100048384},
    {"mistral-7b", 7241732096},
    {"mixtral-8x7b", 46702792704},
    {"qwen2-0.5b", 494032768},
    {"qwen2-7b", 7615616512},
    {"qwen3-30b-a3b", 30532122624},
    {"phi-2", 2779683840},
    {"bloom-560m", 559214592},
    {"bloom-7b1", 7069016064},
    {"gpt2", 124439808},
    {"gpt2-medium", 354823168},
    {"gpt2-large", 774030080},
    {"gpt2-xl", 1557611200},
    {"bert-base", 109514298},
    {"bert-large", 335174458},
    {"t5-base", 222903552},
    {"t5-large", 737668096},
    {"llama-3.1-8b", 8030261248},
    {"llama-3.1-70b", 70553706496},
    {"llama-3.1-405b", 405853388800},
    {"llama-3.3-70b", 70553706496},
    {"mistral-7b-v0.3", 7248023552},
    {"mistral-nemo", 12247782400},
    {"qwen2.5-0.5b", 494032768},
    {"qwen2.5-1.5b", 1543714304},
    {"qwen2.5-3b", 3085938688},
    {"qwen2.5-7b", 7615616512},
    {"qwen2.5-14b", 14770033664},
    {"qwen2.5-32b", 32763876352},
    {"qwen2.5-72b", 72706203648},
    {"qwen3-0.6b", 596049920},
    {"qwen3-1.7b", 1720574976},
    {"qwen3-4b", 4022468096},
    {"qwen3-8b", 8190735360},
    {"qwen3-14b", 14768307200},
    {"qwen3-32b", 32762123264},
    {"gemma-2b", 2506172416},
    {"gemma-7b", 8537680896},
    {"gemma-2-2b", 2614341888},
    {"gemma-2-9b", 9241705984},
    {"gemma-2-27b", 27227128320},
    {"phi-3-mini", 3821079552},
    {"phi-4", 14659507200},
    {"smollm2-135m", 134515008},
    {"smollm2-360m", 361821120},
    {"smollm2-1.7b", 1711376384},
    {"falcon-7b", 6921720704},
    {"opt-125m", 125239296},
    {"opt-1.3b", 1315758080},
    {"opt-6.7b", 6658473984},
    {"roberta-base", 124697433},
    {"roberta-large", 355412057},
    {"distilbert-base", 66985530},
    {"t5-small", 60506624},
    {"t5-3b", 2851598336},
    {"gemma-3-1b", 999885952},
    {"gemma-3-4b-text", 3880263168},
    {"gemma-3-12b-text", 11766034176},
    {"gemma-3-27b-text", 27009346304},
    {"gpt-oss-20b", 20914757184},
    {"gpt-oss-120b", 116829156672},
    {"deepseek-v2-lite", 15706484224},
    {"deepseek-v3", 671026404352},
    {"qwen3-235b-a22b", 235093634560},
    {"smollm3-3b", 3075098624},
    {"phi-4-mini", 3836021760},
    {"glm-4-9b", 9399951360},
    {"starcoder2-3b", 3030371328},
    {"qwen2-1.5b", 1543714304},
    {"qwen2-72b", 72706203648},
    {"deepseek-r1-distill-qwen-1.5b", 1777088000},
    {"mistral-small-24b", 23572403200},
    {"ministral-8b", 8019808256},
    {"codestral-22b", 22247282688},
    {"mixtral-8x22b", 140620634112},
    {"phi-3-medium", 13960238080},
    {"yi-6b", 6061035520},
    {"yi-34b", 34388917248},
    {"codellama-7b", 6738546688},
    {"codellama-34b", 33743970304},
    {"falcon-40b", 41303293952},
    {"pythia-160m", 162322944},
    {"pythia-410m", 405334016},
    {"pythia-1b", 1011781632},
    {"pythia-1.4b", 1414647808},
    {"pythia-2.8b", 2775208960},
    {"pythia-6.9b", 6857302016},
    {"pythia-12b", 11846072320},
    {"gpt-neox-20b", 20554567680},
    {"olmo-2-7b", 7298617344},
    {"olmo-2-13b", 13716198400},
    {"granite-3.1-8b", 8170848256},
    {"gemma-3-270m", 268098176},
    {"opt-2.7b", 2651596800},
    {"opt-13b", 12853473280},
    {"bloom-1b7", 1722408960},
    {"bloom-3b", 3002557440},
    {"xlm-roberta-base", 278295186},
    {"xlm-roberta-large", 560142482},
    {"flan-t5-small", 60511616},
    {"flan-t5-base", 222903552},
    {"flan-t5-large", 750251008},
    {"flan-t5-xl", 2783959040},
    {"flan-t5-xxl", 11003736064},
    {"llava-1.5-7b", 7063427072},
    {"llava-1.5-13b", 13351494656},
    {"paligemma-3b-224", 2923466480},
    {"qwen2-vl-2b", 2208985600},
    {"qwen2-vl-7b", 8291375616},
    {"qwen2.5-vl-3b", 3754622976},
    {"qwen2.5-vl-7b", 8292166656},
    {"qwen2.5-vl-32b", 33452718336},
    {"qwen2.5-vl-72b", 73410777344},
    {"qwen3-vl-8b", 8767123696},
    {"qwen3-vl-4b", 4437815808},
    {"qwen3-vl-2b", 2127532032},
    {"gemma-3-4b", 4300079472},
    {"gemma-3-12b", 12187325040},
    {"gemma-3-27b", 27432406640},
    {"flux.1-dev", 11901408320},
    {"flux.1-schnell", 11891178560},
    {"flux-vae", 83819683},
    {"sdxl-vae", 83653863},
    {"vit-b", 86567656},
    {"vit-l", 304326632},
    {"vit-h", 632045800},
    {"clip-vit-base-patch32", 151277313},
    {"clip-vit-large-patch14", 427616513},
    {"clip-text-large", 123060480},
    {"sd-1.5", 859520964},
    {"sd-vae", 83653863},
    {"sdxl", 2567463684},
    {"dit-xl-2", 749826464},
    {"ddpm-unet", 113673219},
    {"resnet-18", 11689512},
    {"resnet-50", 25557032},
    {"resnet-152", 60192808},
    {"googlenet", 13004888},
    {"inception_v3", 27161264},
    {"fno-2d", 2410433},
    {"fno-3d", 9450529},
    {"modernbert-base", 149655232},
    {"modernbert-large", 395881664},
    {"electra-small", 13549057},
    {"electra-base", 109483009},
    {"electra-large", 335142913},
    {"dinov2-small", 22056576},
    {"dinov2-base", 86580480},
    {"dinov2-large", 304368640},
    {"dinov2-giant", 1136480768},
    {"dinov2-with-registers-small", 22058112},
    {"dinov2-with-registers-base", 86583552},
    {"dinov2-with-registers-large", 304372736},
    {"dinov2-with-registers-giant", 1136486912},
    {"siglip-base-patch16-224", 203155970},
    {"siglip-so400m-patch14-384", 877960498},
    {"siglip2-base-patch16-224", 375187970},
    {"siglip2-so400m-patch14-384", 1136008498},
    {"bart-base", 139420416},
    {"bart-large", 406291456},
    {"bart-large-cnn", 406290432},
    {"mbart-large-50", 610879488},
    {"whisper-tiny", 37760640},
    {"whisper-base", 72593920},
    {"whisper-small", 241734912},
    {"whisper-medium", 763857920},
    {"whisper-large-v2", 1543304960},
    {"whisper-large-v3", 1543490560},
    {"whisper-large-v3-turbo", 808878080},
    {"deberta-v3-xsmall", 70958820},
    {"deberta-v3-small", 142024548},
    {"deberta-v3-base", 184551780},
    {"deberta-v3-large", 435191908},
    {"efficientnet_v2_s", 21458488},
    {"efficientnet_v2_m", 54139356},
    {"efficientnet_v2_l", 118515272},
    {"mixer_s32_224", 19104624},
    {"mixer_s16_224", 18528264},
    {"mixer_b32_224", 60293428},
    {"mixer_b16_224", 59880472},
    {"mixer_l16_224", 208196168},
};

class PresetTableTest : public testing::TestWithParam<ReferenceModel> {};

TEST_P(PresetTableTest, HasTheParametersItsLibraryCounts) {
  EXPECT_EQ(parameters_of(GetParam().name), GetParam().parameters);
}

INSTANTIATE_TEST_SUITE_P(Presets, PresetTableTest, testing::ValuesIn(kTable),
                         [](const auto& tested) {
                           std::string name = tested.param.name;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
                           return name;
                         });

TEST(PresetNamesTest, MayBeWrittenWithHyphensUnderscoresDotsOrNeither) {
  for (const char* name : {"resnet18", "resnet-18", "resnet_18", "ResNet-18"})
    EXPECT_EQ(parameters_of(name), 11689512) << name;
  for (const char* name : {"vit_base_patch16_224", "vit-base-patch16-224", "vit-b", "vit_base"})
    EXPECT_EQ(parameters_of(name), 86567656) << name;
  for (const char* name : {"llama2-7b", "Llama-2-7B", "llama_2_7b"})
    EXPECT_EQ(parameters_of(name), 6738415616) << name;
  for (const char* name : {"sd15", "sd-1.5", "stable-diffusion-v1-5"})
    EXPECT_EQ(parameters_of(name), 859520964) << name;
  EXPECT_EQ(parameters_of("sdxl-unet"), 2567463684);
  EXPECT_EQ(parameters_of("Qwen2.5-Coder-7B"), 7615616512);
  EXPECT_EQ(parameters_of("DeepSeek-R1-Distill-Llama-8B"), 8030261248);
}

TEST(PresetNamesTest, WithoutADotIsAnotherModelWhereThereIsOne) {
  EXPECT_EQ(parameters_of("opt-1.3b"), 1315758080);
  EXPECT_EQ(parameters_of("OPT_1.3B"), 1315758080);
  EXPECT_EQ(parameters_of("opt13b"), 12853473280);
}

TEST(PresetNamesTest, AnUnknownOneIsRefusedWithTheNearest) {
  try {
    parameters_of("resnet-51");
    FAIL() << "an unknown preset was built";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("resnet50"), std::string::npos) << error.what();
  }
}

TEST(CatalogueTest, ListsEveryPresetOfTheTableWithItsCount) {
  const std::vector<CataloguedModel> models = model_catalogue();
  for (const char* name : {"fno-2d", "fno-3d", "clip-vit-base-patch32", "dit-xl-2", "bloom-7b1"}) {
    const auto found = std::find_if(models.begin(), models.end(),
                                    [&](const CataloguedModel& m) { return m.name == name; });
    ASSERT_NE(found, models.end()) << name;
    EXPECT_EQ(found->parameters, parameters_of(name)) << name;
  }
}

}  // namespace
}  // namespace memfathom
