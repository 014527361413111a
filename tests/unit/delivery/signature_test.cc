#include "delivery/signature.h"

#include <gtest/gtest.h>

#include <vector>

namespace tocsin {
namespace {

// Expected values computed with Python's hmac module.
std::string sign(const std::string& key, std::string_view id, std::int64_t timestamp, std::string_view body) {
  return sign_webhook(std::vector{key}, id, timestamp, body);
}

TEST(Signature, AgreesWithAnIndependentImplementation) {
  EXPECT_EQ(
      sign("0123456789abcdef01234567", "65537", 1700000000, R"({"type":"order.unpaid","data":{"job_id":"65537"}})"),
      "v1,f7g9mOD2n98wWlaKbQ8S6dsv7D1n02XInuiXh61+iug=");
  std::string key;
  for (char c = 0; c < 64; ++c) key.push_back(c);
  EXPECT_EQ(sign(key, "1", 0, ""), "v1,i455pSLMfNz78ImMqwnI5ZaYZDJ0Lhd+4NQC0G3J99s=");
  std::string binary;
  for (int i = 0; i < 16; ++i) binary.append("\xff\0", 2);
  EXPECT_EQ(sign(binary, "9007199254740993", 4102444800, std::string_view("订单 ✓ \0 zero", 17)),
            "v1,JQ6LS8QwoawK4Sif2GUZuXDe/UqSmVR2rkNdgX15X3s=");
}

TEST(Signature, AgreesWithTheExampleOfTheScheme) {
  const auto key = decode_webhook_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  ASSERT_TRUE(key);
  EXPECT_EQ(sign(*key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, R"({"test": 2432232314})"),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

TEST(Signature, SignsWithEveryKey) {
  const std::vector<std::string> keys = {"0123456789abcdef01234567", "76543210fedcba9876543210"};
  EXPECT_EQ(sign_webhook(keys, "7", 1700000000, "{}"),
            sign(keys[0], "7", 1700000000, "{}") + " " + sign(keys[1], "7", 1700000000, "{}"));
}

TEST(Signature, DecodesSecretsOfEveryLength) {
  EXPECT_EQ(decode_webhook_secret("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"), "0123456789abcdef01234567");
  EXPECT_EQ(decode_webhook_secret("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGA==")->size(), 25u);
  EXPECT_EQ(decode_webhook_secret("whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBk=")->size(), 26u);
}

TEST(Signature, RefusesOtherSpellingsOfASecret) {
  for (const char* text : {"", "whsec_", "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3", "WHSEC_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3",
                           "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY", "whsec_ MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3",
                           "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3\n", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NT_-",
                           "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGB==", "whsec_===="}) {
    EXPECT_FALSE(decode_webhook_secret(text)) << text;
  }
  EXPECT_FALSE(decode_webhook_secret("whsec_" + std::string(1 << 20, 'A')));
}

}  // namespace
}  // namespace tocsin
