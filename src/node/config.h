#pragma once
#include "tocsin/config.h"
