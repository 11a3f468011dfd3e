#include "textflag.h"

// The assembler of Go knows no AMX: instructions are written out as bytes. Names tell what GNU as calls them; R9 is the stride of sums
// and weights, 128 bytes, R8 that of x.

#define LDTILECFG_AX     BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0x00                         // ldtilecfg (%rax)
#define TILERELEASE      BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0xc0                         // tilerelease
#define ZERO_SUMS_0      BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xc0                         // tilezero %tmm0
#define ZERO_SUMS_1      BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xc8                         // tilezero %tmm1
#define ZERO_SUMS_2      BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xd0                         // tilezero %tmm2
#define ZERO_SUMS_3      BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xd8                         // tilezero %tmm3
#define LOAD_X_4         BYTE $0xc4; BYTE $0xa2; BYTE $0x7b; BYTE $0x4b; BYTE $0x24; BYTE $0x06             // tileloadd (%rsi,%r8,1), %tmm4
#define LOAD_X_5         BYTE $0xc4; BYTE $0x82; BYTE $0x7b; BYTE $0x4b; BYTE $0x2c; BYTE $0x03             // tileloadd (%r11,%r8,1), %tmm5
#define LOAD_WEIGHTS_6   BYTE $0xc4; BYTE $0xa2; BYTE $0x7b; BYTE $0x4b; BYTE $0x34; BYTE $0x0f             // tileloadd (%rdi,%r9,1), %tmm6
#define LOAD_WEIGHTS_7   BYTE $0xc4; BYTE $0xa2; BYTE $0x7b; BYTE $0x4b; BYTE $0x7c; BYTE $0x0f; BYTE $0x40 // tileloadd 0x40(%rdi,%r9,1), %tmm7
#define DOT_4_6_0        BYTE $0xc4; BYTE $0xe2; BYTE $0x49; BYTE $0x5e; BYTE $0xc4                         // tdpbusd %tmm6, %tmm4, %tmm0
#define DOT_4_7_1        BYTE $0xc4; BYTE $0xe2; BYTE $0x41; BYTE $0x5e; BYTE $0xcc                         // tdpbusd %tmm7, %tmm4, %tmm1
#define DOT_5_6_2        BYTE $0xc4; BYTE $0xe2; BYTE $0x49; BYTE $0x5e; BYTE $0xd5                         // tdpbusd %tmm6, %tmm5, %tmm2
#define DOT_5_7_3        BYTE $0xc4; BYTE $0xe2; BYTE $0x41; BYTE $0x5e; BYTE $0xdd                         // tdpbusd %tmm7, %tmm5, %tmm3
#define STORE_SUMS_0     BYTE $0xc4; BYTE $0xa2; BYTE $0x7a; BYTE $0x4b; BYTE $0x04; BYTE $0x0a             // tilestored %tmm0, (%rdx,%r9,1)
#define STORE_SUMS_1     BYTE $0xc4; BYTE $0xa2; BYTE $0x7a; BYTE $0x4b; BYTE $0x4c; BYTE $0x0a; BYTE $0x40 // tilestored %tmm1, 0x40(%rdx,%r9,1)
#define STORE_SUMS_2     BYTE $0xc4; BYTE $0x82; BYTE $0x7a; BYTE $0x4b; BYTE $0x14; BYTE $0x0a             // tilestored %tmm2, (%r10,%r9,1)
#define STORE_SUMS_3     BYTE $0xc4; BYTE $0x82; BYTE $0x7a; BYTE $0x4b; BYTE $0x5c; BYTE $0x0a; BYTE $0x40 // tilestored %tmm3, 0x40(%r10,%r9,1)

// The weights 12 KB ahead, which come from far.
#define FETCH \
	PREFETCHT0 12288(DI); \
	PREFETCHT0 12352(DI); \
	PREFETCHT0 12416(DI); \
	PREFETCHT0 12480(DI); \
	PREFETCHT0 12544(DI); \
	PREFETCHT0 12608(DI); \
	PREFETCHT0 12672(DI); \
	PREFETCHT0 12736(DI); \
	PREFETCHT0 12800(DI); \
	PREFETCHT0 12864(DI); \
	PREFETCHT0 12928(DI); \
	PREFETCHT0 12992(DI); \
	PREFETCHT0 13056(DI); \
	PREFETCHT0 13120(DI); \
	PREFETCHT0 13184(DI); \
	PREFETCHT0 13248(DI); \
	PREFETCHT0 13312(DI); \
	PREFETCHT0 13376(DI); \
	PREFETCHT0 13440(DI); \
	PREFETCHT0 13504(DI); \
	PREFETCHT0 13568(DI); \
	PREFETCHT0 13632(DI); \
	PREFETCHT0 13696(DI); \
	PREFETCHT0 13760(DI); \
	PREFETCHT0 13824(DI); \
	PREFETCHT0 13888(DI); \
	PREFETCHT0 13952(DI); \
	PREFETCHT0 14016(DI); \
	PREFETCHT0 14080(DI); \
	PREFETCHT0 14144(DI); \
	PREFETCHT0 14208(DI); \
	PREFETCHT0 14272(DI)

// Eight tiles of 16 rows of 64 bytes.
DATA tiles<>+0(SB)/8, $1
DATA tiles<>+8(SB)/8, $0
DATA tiles<>+16(SB)/8, $0x0040004000400040
DATA tiles<>+24(SB)/8, $0x0040004000400040
DATA tiles<>+32(SB)/8, $0
DATA tiles<>+40(SB)/8, $0
DATA tiles<>+48(SB)/8, $0x1010101010101010
DATA tiles<>+56(SB)/8, $0
GLOBL tiles<>(SB), RODATA, $64

// func matrixAMX(acc *int32, x *uint8, stride int, w *int8, k64, rows16, blocks int)
// Sixteen rows of x make a tile, as do the weights of 64 inputs and 16 outputs, packed as they are; two tiles of rows at a time. R13 and R14 are the
// weights of the block in hand and the blocks left, R12 and BX a block's rows in hand and the tiles of them left.
TEXT ·matrixAMX(SB), NOSPLIT, $0-56
	MOVQ acc+0(FP), DX
	MOVQ stride+16(FP), R8
	MOVQ w+24(FP), R13
	MOVQ blocks+48(FP), R14
	MOVQ $128, R9
	LEAQ tiles<>(SB), AX
	LDTILECFG_AX

block:
	MOVQ x+8(FP), R12
	MOVQ rows16+40(FP), BX

rows:
	MOVQ R13, DI
	MOVQ k64+32(FP), CX
	MOVQ R12, SI
	ZERO_SUMS_0
	ZERO_SUMS_1
	CMPQ BX, $1
	JEQ  one
	MOVQ R8, R11
	SHLQ $4, R11
	ADDQ SI, R11
	ZERO_SUMS_2
	ZERO_SUMS_3

two:
	LOAD_X_4
	LOAD_WEIGHTS_6
	LOAD_WEIGHTS_7
	LOAD_X_5
	DOT_4_6_0
	DOT_4_7_1
	DOT_5_6_2
	DOT_5_7_3
	FETCH
	ADDQ $64, SI
	ADDQ $64, R11
	ADDQ $2048, DI
	DECQ CX
	JNZ  two

	LEAQ 2048(DX), R10
	STORE_SUMS_0
	STORE_SUMS_1
	STORE_SUMS_2
	STORE_SUMS_3
	ADDQ $4096, DX
	MOVQ R8, AX
	SHLQ $5, AX
	ADDQ AX, R12
	SUBQ $2, BX
	JNZ  rows
	JMP  next

one:
	LOAD_X_4
	LOAD_WEIGHTS_6
	LOAD_WEIGHTS_7
	DOT_4_6_0
	DOT_4_7_1
	FETCH
	ADDQ $64, SI
	ADDQ $2048, DI
	DECQ CX
	JNZ  one

	STORE_SUMS_0
	STORE_SUMS_1
	ADDQ $2048, DX

next:
	MOVQ DI, R13
	DECQ R14
	JNZ  block
	TILERELEASE
	RET
